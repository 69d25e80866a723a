import { parseArgs } from 'node:util';
import { fuzz } from '../lab/fuzz/run.ts';

/** Feeds damaged and hostile inputs to the engine: `npm run fuzz -- --seconds 60 --seed 7 --out failures`. */
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    count: { type: 'string', default: '1000000000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    first: { type: 'string', default: '0' },
    jobs: { type: 'string' },
    out: { type: 'string' },
  },
});
const seed = Number(values.seed);
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
const result = await fuzz({
  seed,
  seconds: Number(values.seconds),
  count: Number(values.count),
  first: Number(values.first),
  ...(values.jobs === undefined ? {} : { jobs: Number(values.jobs) }),
  out: values.out ?? null,
  signal: stop.signal,
  onProgress: (done, defects) => {
    if (process.stderr.isTTY) process.stderr.write(`\r${done} inputs, ${defects} kinds of defect `);
  },
});
console.log(
  `seed ${seed}: ${result.inputs} inputs in ${result.seconds.toFixed(0)} s (${(result.inputs / result.seconds).toFixed(0)}/s), ` +
    `${result.reports} reports, ${result.refusals} refusals, peak ${result.peakRssMb.toFixed(0)} MB per process, ${result.defects.length} kinds of defect`,
);
for (const defect of result.defects) {
  console.log(
    `\n${defect.kind} (${defect.times} times, first at --seed ${seed} --first ${defect.index} --count 1)\n  ${defect.message.replaceAll('\n', '\n  ')}`,
  );
  for (const step of defect.steps) console.log(`  · ${step}`);
  if (defect.saved !== null) console.log(`  ${defect.saved}`);
}
if (result.defects.length > 0) process.exitCode = 1;
