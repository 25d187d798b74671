// Statistics of measured values: percentiles, medians and slopes, and how they are written.

/** The value below which this part (0 to 1) of the values are; by nearest rank. */
export function percentile(values, part) {
  if (!values.length) throw new Error("no values were measured");
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)];
}

export const median = (values) => {
  if (!values.length) throw new Error("no values were measured");
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

/** p50, p99 and the maximum. */
export const latencies = (values) => ({
  count: values.length,
  p50: percentile(values, 0.5),
  p99: percentile(values, 0.99),
  max: percentile(values, 1),
});

/** The median of each field of several rounds. */
export function medians(rounds) {
  const fields = Object.keys(rounds[0]).filter((field) => typeof rounds[0][field] === "number");
  return Object.fromEntries(fields.map((field) => [field, median(rounds.map((round) => round[field]))]));
}

/** Three significant digits: 0.123, 1.23, 12.3, 123, 1230. */
export function short(value) {
  if (value === null || value === undefined) return "";
  if (!Number.isFinite(value)) throw new Error(`a figure is ${value}`);
  if (Math.abs(value) >= 100) return String(Math.round(value));
  return value.toFixed(Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 1 ? 2 : 3);
}
