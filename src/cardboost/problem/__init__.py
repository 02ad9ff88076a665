"""What is minimised over the rows and columns of a problem, and the bound that proves it.

    losses.py  the losses, each with derivative, curvature, conjugate and probability
    risk.py    the weighted mean loss over the rows, and the row weights that follow from it
    prices.py  regularisation (l0, l1, l2) and box of every column; limits on features
    bound.py   the lower bound for any row weights, the gap and the guarantee
    budget.py  the time that a piece of work may take

Losses are public: ``from cardboost.problem.losses import Loss``. The equations are in docs/mathematics.md.
"""
