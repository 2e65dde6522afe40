// How much a token weighs that occurs c times: the expression comes with the model (keytokens/model/weighting.py).

const OPERATIONS = {
  "+": (x, y) => x + y,
  "*": (x, y) => x * y,
  "/": (x, y) => x / y,
  min: Math.min,
  max: Math.max,
  log: Math.log,
  sqrt: Math.sqrt,
  sign: Math.sign,
};

/** A function of the amount: "c", a number, or [operation, expression, ...]. */
function evaluated(value) {
  if (value === "c") return (c) => c;
  if (!Array.isArray(value)) return () => value;
  const [operation, ...parts] = value;
  const of = parts.map(evaluated);
  return (c) => OPERATIONS[operation](...of.map((part) => part(c)));
}

/** {name, additive: whether each occurrence counts for itself, of(c): the weight of an amount}. */
export function weightingOf({ name, value, additive }) {
  return { name, additive, of: evaluated(value) };
}
