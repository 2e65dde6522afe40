// Arithmetic that must agree with Python's to the last comparison.

/** The correctly rounded sum: its sign is the exact sign of the sum of the floats (Shewchuk's partial sums). */
export function fsum(numbers) {
  const partials = [];
  for (let x of numbers) {
    let used = 0;
    for (let y of partials) {
      if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
      const high = x + y;
      const low = y - (high - x);
      if (low !== 0) partials[used++] = low;
      x = high;
    }
    partials.length = used;
    partials.push(x);
  }
  return rounded(partials);
}

/** The float nearest to a sum of non-overlapping partials, ties to even. */
function rounded(partials) {
  let n = partials.length;
  if (n === 0) return 0;
  let high = partials[--n];
  let low = 0;
  while (n > 0) {
    const x = high;
    const y = partials[--n];
    high = x + y;
    low = y - (high - x);
    if (low !== 0) break;
  }
  if (n > 0 && ((low < 0 && partials[n - 1] < 0) || (low > 0 && partials[n - 1] > 0))) {
    const twice = low * 2;
    const x = high + twice;
    if (twice === x - high) high = x;
  }
  return high;
}

/** log(sum(exp(x))), -Infinity for nothing. */
export function logSumExp(logs) {
  let top = -Infinity;
  for (const x of logs) if (x > top) top = x;
  if (top === -Infinity) return top;
  let total = 0;
  for (const x of logs) total += Math.exp(x - top);
  return top + Math.log(total);
}

/** Place of the largest entry, the first among equals. */
export function argmax(numbers) {
  let best = 0;
  for (let i = 1; i < numbers.length; i++) if (numbers[i] > numbers[best]) best = i;
  return best;
}

/** Places in order of decreasing numbers, equal ones in their own order. */
export function byDecreasing(places, numbers) {
  return Array.from(places).sort((i, j) => numbers[j] - numbers[i] || i - j);
}

/** Decimals as Python writes them: exact halves go to the even digit, where `toFixed` goes up. */
export function fixed(x, digits) {
  const written = Math.abs(x).toFixed(digits);
  const scaled = Math.abs(x) * 10 ** digits;
  const half = scaled - Math.floor(scaled) === 0.5 && Number.isInteger(Math.abs(x) * 2 ** 20);
  const even = half && Math.floor(scaled) % 2 === 0 ? (Math.floor(scaled) / 10 ** digits).toFixed(digits) : written;
  return (x < 0 ? "-" : "") + even;
}

export function clip(x, low, high) {
  return x < low ? low : x > high ? high : x;
}

/** How often each of 0..n-1 occurs. */
export function tally(places, n) {
  const counts = new Int32Array(n);
  for (const i of places) counts[i]++;
  return counts;
}
