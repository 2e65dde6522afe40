// Least sum of x with A x >= b, 0 <= x <= 1, A >= 0: the simplex method with bounded variables, for few rows.
// It begins at a set that is feasible (entries of `start` at 1, the others at 0), so few pivots are needed.

const TOLERANCE = 1e-9;
const MOST_PIVOTS = 5000; // never reached in practice; beyond it there is no answer rather than a long wait

/**
 * {x, bound}, or null without an answer. The bound comes from the dual prices y >= 0 alone: for all such y
 *   sum_r y_r b_r - sum_t max(0, sum_r y_r A_rt - 1)
 * is at most the least sum, whatever rounding did to the pivots.
 */
export function leastCoverRelaxed(A, b, start) {
  const R = A.length;
  const T = A[0].length;
  // columns 0..T-1: x; T..T+R-1: what exceeds b. Rows of the tableau: the basic variables in terms of the others.
  const upper = new Float64Array(T + R).fill(Infinity).fill(1, 0, T);
  const atUpper = new Uint8Array(T + R);
  for (const t of start) atUpper[t] = 1;
  const rows = A.map((row, r) => {
    const line = new Float64Array(T + R);
    for (let t = 0; t < T; t++) line[t] = -row[t];
    line[T + r] = 1;
    return line;
  });
  const basis = A.map((_, r) => T + r);
  const isBasic = new Uint8Array(T + R).fill(1, T);
  const value = A.map((row, r) => start.reduce((sum, t) => sum + row[t], 0) - b[r]);
  if (value.some((one) => one < -1e-7)) return null;
  const cost = new Float64Array(T + R).fill(1, 0, T); // reduced costs
  for (let pivots = 0; pivots < MOST_PIVOTS; pivots++) {
    const j = entering(cost, atUpper, isBasic, pivots);
    if (j < 0) {
      const x = solution(T, upper, atUpper, isBasic, basis, value);
      return { x, bound: dualBound(A, b, cost.subarray(T)) };
    }
    const direction = atUpper[j] ? -1 : 1;
    const step = leaving(rows, value, basis, upper, j, direction);
    for (let r = 0; r < R; r++) value[r] -= direction * step.size * rows[r][j];
    if (step.row < 0) {
      atUpper[j] = 1 - atUpper[j];
      continue;
    }
    const out = basis[step.row];
    atUpper[out] = step.toUpper ? 1 : 0;
    isBasic[out] = 0;
    isBasic[j] = 1;
    basis[step.row] = j;
    value[step.row] = (direction < 0 ? upper[j] : 0) + direction * step.size;
    atUpper[j] = 0;
    pivot(rows, cost, step.row, j);
  }
  return null;
}

/** The variable that lowers the cost fastest; after many pivots the first one, which cannot cycle. */
function entering(cost, atUpper, isBasic, pivots) {
  let best = -1;
  let most = TOLERANCE;
  for (let j = 0; j < cost.length; j++) {
    if (isBasic[j]) continue;
    const gain = atUpper[j] ? cost[j] : -cost[j];
    if (gain > most) {
      if (pivots > 500) return j;
      best = j;
      most = gain;
    }
  }
  return best;
}

/** How far it can go: to its own other bound (row -1), or until a basic variable meets one of its bounds. */
function leaving(rows, value, basis, upper, j, direction) {
  const found = { size: upper[j], row: -1, toUpper: false };
  for (let r = 0; r < rows.length; r++) {
    const slope = direction * rows[r][j]; // the basic variable falls by this much a step
    if (Math.abs(slope) < 1e-11) continue;
    const room = slope > 0 ? value[r] / slope : (upper[basis[r]] - value[r]) / -slope;
    if (room < found.size - 1e-13 || (found.row >= 0 && room < found.size + 1e-13 && basis[r] < basis[found.row])) {
      found.size = Math.max(room, 0);
      found.row = r;
      found.toUpper = slope < 0;
    }
  }
  return found;
}

function pivot(rows, cost, row, j) {
  const line = rows[row];
  const lead = line[j];
  for (let i = 0; i < line.length; i++) line[i] /= lead;
  for (const other of [...rows, cost]) {
    const factor = other[j];
    if (other === line || factor === 0) continue;
    for (let i = 0; i < line.length; i++) other[i] -= factor * line[i];
    other[j] = 0;
  }
}

function solution(T, upper, atUpper, isBasic, basis, value) {
  const x = Array.from({ length: T }, (_, t) => (isBasic[t] || !atUpper[t] ? 0 : upper[t]));
  basis.forEach((j, r) => {
    if (j < T) x[j] = Math.min(1, Math.max(0, value[r]));
  });
  return x;
}

function dualBound(A, b, prices) {
  const y = Array.from(prices, (price) => Math.max(0, price));
  let bound = y.reduce((sum, price, r) => sum + price * b[r], 0);
  for (let t = 0; t < A[0].length; t++) {
    const paid = y.reduce((sum, price, r) => sum + price * A[r][t], 0);
    bound -= Math.max(0, paid - 1);
  }
  return bound;
}
