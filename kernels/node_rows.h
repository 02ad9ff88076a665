// What the bound of a node takes from the rows.
#pragma once
#include "nodes.h"

namespace cardboost {

// The rows of a choice of columns, as one thread sees them: margins, and what follows from them. All that takes time in
// proportion to the rows is here.
class NodeRows {
public:
    explicit NodeRows(const ChoiceProblem& problem);

    // moves to the margins of these weights, where only `columns` may differ from zero: risk, row weights, curvatures
    double move(const double* w, const ColumnList& columns);
    // c_j = sum of row weights times column j
    void edges(const ColumnList& columns, double* c) const;
    // H = sum of curvature times a a' over `columns`, both triangles, in their rows and columns of an (n, n) matrix
    void hessian(const ColumnList& columns, double* H);

    // margins may lie between the problem's floors and caps
    void widen();
    // and no further from those of here than sqrt(scale * a' P a), P over `columns` with n numbers a row
    void narrow(const ColumnList& columns, const double* P, double scale);
    // what is left of every row's curvature on the way from here to its floor or cap
    void cut();
    // the Hessian of that
    void hessian_left(const ColumnList& columns, double* H);

private:
    void margins(const double* w, const ColumnList& columns);
    void gram(const ColumnList& columns, const std::vector<double>& x, double* H);
    void load_block(const ColumnList& columns, int64_t first, int rows);

    const ChoiceProblem& p_;
    const int groups_;
    std::vector<double> F_, u_, curvature_, floors_, caps_, left_, gram_, block_, scaled_;
};

}  // namespace cardboost
