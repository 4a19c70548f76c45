// Answers of kernels to inputs, in a browser or in node: see parity.py.
// JSON has no infinity and no NaN: these come and go as texts.
const taken = (value) =>
  Array.isArray(value) ? Float64Array.from(value, Number) : Number(value);
const spoken = (value) => (Number.isFinite(value) ? value : String(value));
const given = (value) =>
  value instanceof Float64Array ? Array.from(value, spoken)
  : typeof value === "number" ? spoken(value) : value;
const mapped = (values, change) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]));

// Milliseconds of the processor where they can be had, which other programs leave alone.
const time = () => {
  const used = globalThis.process?.cpuUsage?.();
  return used ? (used.user + used.system) / 1000 : performance.now();
};

export async function answers(jobs, base) {
  const results = [];
  for (const { file, inputs, repeat = 0 } of jobs) {
    const { default: kernel } = await import(new URL(file, base));
    const values = mapped(inputs, taken);
    const answer = mapped(kernel(values), given);
    for (let k = 0; k < repeat; k++) kernel(values); // until it is compiled
    const start = time();
    for (let k = 0; k < repeat; k++) kernel(values);
    if (repeat) answer.milliseconds = (time() - start) / repeat;
    results.push(answer);
  }
  return results;
}

if (globalThis.process?.versions?.node) {
  const { readFileSync } = await import("node:fs");
  console.log(JSON.stringify(await answers(...JSON.parse(readFileSync(0)))));
}
