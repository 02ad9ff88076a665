// Single-column moves of the exponential loss have closed forms: with P and N the row weights where the column is +1
// and -1, moving its weight by d takes P + N to P e^-d + N e^d. One product with all columns prices every move.
#include "door.h"
#include "fastmath.h"
#include "signs.h"

namespace cardboost {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// min  sum s_i exp(-F_i) + sum l1_j w_j + l2_j w_j^2 / 2 + l0_j [w_j > 0],   w_j = step_j q_j,  0 <= q_j <= top_j,
// with at most max_terms (negative: any number) of the counted columns in use. Columns of +-1, eight to a byte.
struct LevelProblem {
    const uint8_t* packed;
    int64_t rows;
    int n;
    const double *s, *l1, *l2, *l0, *step;
    const int32_t* top;
    const uint8_t* counted;
    int64_t max_terms;
};

// Signed sums of u over eight columns, in a fixed order: rows with equal bytes are added up first, then the 256 sums
// are folded one bit at a time.
void signed_sums(const uint8_t* bytes, const double* u, int64_t n, int columns, double* out) {
    double sums[256];
    byte_sums(n, bytes, u, sums);
    for (int k = 0; k < columns; ++k) {
        double sum = 0.0;
        for (int b = 0; b < 128 >> k; ++b) {
            sum += sums[2 * b] - sums[2 * b + 1];
            sums[b] = sums[2 * b] + sums[2 * b + 1];
        }
        out[k] = sum;
    }
}

double total(const double* u, int64_t n) {
    double part[4] = {};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; ++k) part[k] += u[i + k];
    for (; i < n; ++i) part[i % 4] += u[i];
    return (part[0] + part[1]) + (part[2] + part[3]);
}

CARDBOOST_CLONES
void scale_rows(const uint8_t* bytes, int bit, double up, double down, int64_t n, double* u) {
    const uint8_t mask = static_cast<uint8_t>(1 << bit);
    for (int64_t i = 0; i < n; ++i) u[i] *= bytes[i] & mask ? up : down;
}

CARDBOOST_CLONES
void add_margins(const uint8_t* bytes, int bit, double weight, int64_t n, double* out) {
    const uint8_t mask = static_cast<uint8_t>(1 << bit);
    for (int64_t i = 0; i < n; ++i) out[i] += bytes[i] & mask ? -weight : weight;
}

CARDBOOST_CLONES
void exponential_weights(const double* s, int64_t n, double* u) {
    for (int64_t i = 0; i < n; ++i) u[i] = s[i] * exp_poly(-u[i]);
}

// The row weights u at the present levels, their signed sums, and what moves cost.
class LevelRows {
public:
    LevelRows(const LevelProblem& problem, const int32_t* levels)
        : p_(problem), u_(problem.rows, 0.0), edges_(problem.n), grow_(problem.n), shrink_(problem.n) {
        for (int j = 0; j < p_.n; ++j) {
            grow_[j] = exp_poly(p_.step[j]);
            shrink_[j] = 1.0 / grow_[j];
            if (levels[j]) add_margins(bytes(j), j % 8, p_.step[j] * levels[j], p_.rows, u_.data());
        }
        exponential_weights(p_.s, p_.rows, u_.data());
        sum();
    }

    double risk() const { return risk_; }

    void move(int j, int32_t from, int32_t to) {
        const double up = exp_poly(p_.step[j] * (to - from));
        scale_rows(bytes(j), j % 8, up, 1.0 / up, p_.rows, u_.data());
        sum();
    }

    // the convex part of the price of a level
    double cost(int j, int32_t level) const {
        const double w = p_.step[j] * level;
        return p_.l1[j] * w + 0.5 * p_.l2[j] * w * w;
    }

    // what the objective changes by, without l0
    double rise(int j, int32_t from, int32_t to) const {
        const double up = exp_poly(p_.step[j] * (to - from));
        return plus(j) * (1.0 / up - 1.0) + minus(j) * (up - 1.0) + (cost(j, to) - cost(j, from));
    }

    // the best level above 0: where the rise from a level to the next one changes its sign
    int32_t best(int j, int32_t from) const {
        const double plus_step = plus(j) * (shrink_[j] - 1.0), minus_step = minus(j) * (grow_[j] - 1.0);
        const double h = p_.step[j], straight = p_.l1[j] * h, bent = p_.l2[j] * h * h;
        int32_t low = 1, high = p_.top[j];
        while (low < high) {
            const int32_t middle = low + (high - low) / 2;
            const double up = exp_poly(h * (middle - from));
            if (plus_step / up + minus_step * up + straight + bent * (middle + 0.5) < 0.0)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

private:
    const uint8_t* bytes(int j) const { return p_.packed + static_cast<int64_t>(j / 8) * p_.rows; }
    double plus(int j) const { return std::max(0.0, 0.5 * (risk_ + edges_[j])); }
    double minus(int j) const { return std::max(0.0, 0.5 * (risk_ - edges_[j])); }

    void sum() {
        risk_ = total(u_.data(), p_.rows);
        for (int j = 0; j < p_.n; j += 8)
            signed_sums(bytes(j), u_.data(), p_.rows, std::min(8, p_.n - j), edges_.data() + j);
    }

    const LevelProblem& p_;
    std::vector<double> u_, edges_, grow_, shrink_;
    double risk_ = 0.0;
};

double objective(const LevelProblem& p, const LevelRows& rows, const int32_t* levels) {
    double value = rows.risk();
    for (int j = 0; j < p.n; ++j) value += rows.cost(j, levels[j]) + (levels[j] > 0 ? p.l0[j] : 0.0);
    return value;
}

// splitmix64
uint64_t random_bits(int64_t* state) {
    uint64_t z = static_cast<uint64_t>(*state) + 0x9e3779b97f4a7c15ull;
    *state = static_cast<int64_t>(z);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

int64_t draw(int64_t least, int64_t most, int64_t* state) {
    return least + static_cast<int64_t>(random_bits(state) % static_cast<uint64_t>(most - least + 1));
}

bool same_support(const int32_t* left, const int32_t* right, int n) {
    for (int j = 0; j < n; ++j)
        if ((left[j] > 0) != (right[j] > 0)) return false;
    return true;
}

// One row of the elite per support; a new one replaces the worst.
void keep(const int32_t* levels, double value, int n, int32_t* elite, double* values, int kept) {
    int index = 0;
    for (int k = 0; k < kept; ++k) {
        if (values[k] < kInfinity && same_support(levels, elite + static_cast<int64_t>(k) * n, n)) {
            index = k;
            break;
        }
        if (values[k] > values[index]) index = k;
    }
    if (kept == 0 || value >= values[index]) return;
    values[index] = value;
    std::copy(levels, levels + n, elite + static_cast<int64_t>(index) * n);
}

struct Move {
    int column = -1;
    int32_t level = 0;
    double rise = kInfinity;

    void offer(int j, int32_t to, double price) {
        if (price < rise) *this = {j, to, price};
    }
};

// What every single-column move would do to the objective, from sums over rows that all moves share: best[j] is the
// best level of column j above 0 (0 where it has none) with all others as they are, rise[j] the change of the
// objective for going there, and drop[j] that for going to 0. Returns the objective at `levels`.
double price_levels(const LevelProblem& problem, const int32_t* levels, int32_t* best, double* rise, double* drop) {
    const LevelRows rows(problem, levels);
    for (int j = 0; j < problem.n; ++j) {
        const int32_t now = levels[j];
        const double paid = now > 0 ? problem.l0[j] : 0.0;
        best[j] = problem.top[j] > 0 ? rows.best(j, now) : 0;
        rise[j] = best[j] > 0 ? rows.rise(j, now, best[j]) + (problem.l0[j] - paid) : 0.0;
        drop[j] = now > 0 ? rows.rise(j, now, 0) - paid : 0.0;
    }
    return objective(problem, rows, levels);
}

// Tenures are drawn between their ends: how many changes of the support a column that left it stays out, and one
// that joined it stays in.
struct Tenure {
    int64_t out_least, out_most, in_least, in_most;
};

// Tabu search, in place on `levels`, `until` (when a column may change sides again), `state` (changes of the support
// so far, random numbers) and the elite (`kept` rows of levels with their values, infinite where empty): the best
// local optima met, one per support. Takes the best move that lowers the objective by more than `tolerance` of it;
// where there is none, the column that joins or leaves the support at the least cost. Returns the moves made.
int64_t tabu_moves(const LevelProblem& p, const Tenure& tenure, int64_t moves, double tolerance, int32_t* levels,
                   int64_t* until, int64_t* state, int32_t* elite, double* values, int kept) {
    LevelRows rows(p, levels);
    int64_t used = 0;
    for (int j = 0; j < p.n; ++j) used += p.counted[j] && levels[j] > 0;
    int64_t &clock = state[0], *random = state + 1;
    double incumbent = kInfinity;
    for (int k = 0; k < kept; ++k) incumbent = std::min(incumbent, values[k]);

    for (int64_t done = 0; done < moves; ++done) {
        const double value = objective(p, rows, levels);
        const double least = tolerance * value;
        Move better, other, soonest;  // downhill; uphill and allowed; uphill and allowed first
        for (int j = 0; j < p.n; ++j) {
            if (p.top[j] <= 0) continue;
            const int32_t now = levels[j], best = rows.best(j, now);
            const bool counted = p.counted[j];
            const bool barred = counted && until[j] > clock;
            const double rise = best == now ? kInfinity : rows.rise(j, now, best);
            if (now > 0 && rise < -least) better.offer(j, best, rise);
            if (now == 0 && counted && p.max_terms >= 0 && used >= p.max_terms) continue;
            // the move that changes sides
            const int32_t to = now > 0 ? 0 : best;
            const double price = now > 0 ? rows.rise(j, now, 0) - p.l0[j] : rise + p.l0[j];
            if (price < -least && (!barred || value + price < incumbent - least)) better.offer(j, to, price);
            if (!counted) continue;
            if (!barred) other.offer(j, to, price);
            if (soonest.column < 0 || until[j] < until[soonest.column]) soonest = {j, to, price};
        }
        Move next = better;
        if (next.column < 0) {
            keep(levels, value, p.n, elite, values, kept);
            incumbent = std::min(incumbent, value);
            next = other.column >= 0 ? other : soonest;
        }
        if (next.column < 0) return done;
        const int j = next.column;
        const bool out = next.level == 0;
        if (p.counted[j] && (levels[j] == 0 || out)) {
            ++clock;
            until[j] = clock + (out ? draw(tenure.out_least, tenure.out_most, random)
                                    : draw(tenure.in_least, tenure.in_most, random));
            used += out ? -1 : 1;
        }
        rows.move(j, levels[j], next.level);
        levels[j] = next.level;
    }
    return moves;
}

// What both bindings are called with.
struct LevelArrays {
    In<uint8_t, 2> packed;
    In<double, 1> s, l1, l2, l0, step;
    In<int32_t, 1> top;
};

template <class Levels>
LevelProblem level_problem(const LevelArrays& in, const Levels& levels) {
    const size_t n = in.l1.shape(0), rows = in.packed.shape(1);
    require(in.packed.shape(0) == (n + 7) / 8, "levels: one row of bytes for eight columns");
    require(have_length(rows, in.s), "levels: weights and rows differ in length");
    require(have_length(n, in.l2, in.l0, in.step, in.top, levels), "levels: sizes differ");
    for (size_t j = 0; j < n; ++j) {
        const int32_t top = in.top.data()[j], level = levels.data()[j];
        const double step = in.step.data()[j];
        require(top >= 0 && top <= 1 << 24, "levels: a top is out of range");
        require(level >= 0 && level <= top, "levels: a level is out of range");
        require(step >= 0.0 && step * top <= 700.0, "levels: a step is out of range");
    }
    return {in.packed.data(), static_cast<int64_t>(rows), as_int(n), in.s.data(), in.l1.data(), in.l2.data(),
            in.l0.data(), in.step.data(), in.top.data(), nullptr, -1};
}

auto py_price_levels(In<uint8_t, 2> packed, In<double, 1> s, In<double, 1> l1, In<double, 1> l2, In<double, 1> l0,
                     In<double, 1> step, In<int32_t, 1> top, In<int32_t, 1> levels) {
    const LevelProblem problem = level_problem({packed, s, l1, l2, l0, step, top}, levels);
    const size_t n = l1.shape(0);
    auto best = make<int32_t>({n});
    auto rise = make<double>({n}), drop = make<double>({n});
    const double value =
        unlocked([&] { return price_levels(problem, levels.data(), best.data(), rise.data(), drop.data()); });
    return std::make_tuple(value, best, rise, drop);
}

int64_t py_tabu_moves(In<uint8_t, 2> packed, In<double, 1> s, In<double, 1> l1, In<double, 1> l2, In<double, 1> l0,
                      In<double, 1> step, In<int32_t, 1> top, In<uint8_t, 1> counted, int64_t max_terms,
                      In<int64_t, 1> tenure, int64_t moves, double tolerance, InOut<int32_t, 1> levels,
                      InOut<int64_t, 1> until, InOut<int64_t, 1> state, InOut<int32_t, 2> elite,
                      InOut<double, 1> values) {
    LevelProblem problem = level_problem({packed, s, l1, l2, l0, step, top}, levels);
    const size_t n = l1.shape(0), kept = values.shape(0);
    require(have_length(n, counted, until) && have_length(2, state), "tabu_moves: sizes differ");
    require(has_shape(elite, {kept, n}), "tabu_moves: sizes of the elite differ");
    problem.counted = counted.data();
    problem.max_terms = max_terms;
    const int64_t clock = state.data()[0];
    require(clock >= 0 && clock < int64_t{1} << 40 && moves < int64_t{1} << 40, "tabu_moves: too many moves");
    require(have_length(4, tenure), "tabu_moves: four tenures are needed");
    require(all_entries(tenure, [](int64_t t) { return t >= 0 && t < 1 << 30; }),
            "tabu_moves: a tenure is out of range");
    const int64_t* t = tenure.data();
    require(t[0] <= t[1] && t[2] <= t[3], "tabu_moves: tenures must ascend");
    require(tolerance >= 0.0, "tabu_moves: the tolerance is negative");
    return unlocked([&] {
        return tabu_moves(problem, {t[0], t[1], t[2], t[3]}, moves, tolerance, levels.data(), until.data(),
                          state.data(), elite.data(), values.data(), as_int(kept));
    });
}

}  // namespace

void bind_tabu(nb::module_& m) {
    m.def("price_levels", &py_price_levels, "packed"_a, "s"_a, "l1"_a, "l2"_a, "l0"_a, "step"_a, "top"_a, "levels"_a);
    m.def("tabu_moves", &py_tabu_moves, "packed"_a, "s"_a, "l1"_a, "l2"_a, "l0"_a, "step"_a, "top"_a, "counted"_a,
          "max_terms"_a, "tenure"_a, "moves"_a, "tolerance"_a, "levels"_a.noconvert(), "until"_a.noconvert(),
          "state"_a.noconvert(), "elite"_a.noconvert(), "values"_a.noconvert());
}

}  // namespace cardboost
