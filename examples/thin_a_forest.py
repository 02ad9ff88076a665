"""Thin a forest: twelve trees of three hundred, with new weights and a certificate. Runs in a few seconds.

python examples/thin_a_forest.py
"""

from __future__ import annotations

from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from cardboost.solvers import thin_learners


def main() -> None:
    X, y = make_classification(3000, 12, n_informative=6, flip_y=0.1, random_state=0)
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.6, random_state=0)
    # Trees are chosen on rows that they have not seen: on those they have, each looks better than it is.
    X_select, X_test, y_select, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)

    forest = RandomForestClassifier(300, random_state=0).fit(X_train, y_train)
    result = thin_learners(forest.estimators_, X_select, y_select, max_terms=12, l2=0.1)

    thinned = result.ensemble
    print(f"accuracy on {len(y_test)} rows held out")
    print(f"  all {len(forest.estimators_)} trees: {100 * forest.score(X_test, y_test):.1f} %")
    print(f"  {thinned.n_terms} of them:    {100 * (thinned.predict(X_test) == y_test).mean():.1f} %")
    share = int(1000 * result.guarantee) / 10  # rounded down: it is a promise
    print(f"at least {share} % of what any {thinned.n_terms} of the trees could gain where they were chosen")

    # The checker shares no code with the selection: it recomputes every number from the trees and the rows.
    faults = result.faults(X_select, y_select)
    print("the certificate holds" if not faults else "\n".join(["the certificate does NOT hold:", *faults]))


if __name__ == "__main__":
    main()
