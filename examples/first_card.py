"""A first card: train, read, test, verify. Runs in a few seconds and downloads nothing.

python examples/first_card.py
"""

from __future__ import annotations

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from cardboost import CardBoostClassifier


def main() -> None:
    try:
        X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    except ImportError:
        raise SystemExit("This example names its columns with a pandas frame: pip install pandas") from None
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)

    model = CardBoostClassifier(max_terms=5).fit(X_train, y_train)

    print(model.card())
    print(f"accuracy on the {len(y_test)} rows held out: {100 * model.score(X_test, y_test):.1f} %")

    # The checker shares no code with the training: it recomputes every number from the data.
    faults = model.certificate_.faults(X_train, y_train)
    print("the certificate holds" if not faults else "\n".join(["the certificate does NOT hold:", *faults]))


if __name__ == "__main__":
    main()
