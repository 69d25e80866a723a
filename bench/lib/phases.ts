import { type AnalyseInput, analyse } from '../../src/engine/analyse.ts';
import { openSource } from '../../src/sources/index.ts';

/** Prints how long reading a profile took and how long everything after it, ms, as JSON. Usage: phases.ts PATH [LANG] */
const [path = '.'] = process.argv.slice(2);
const source = await openSource(path);
const begin = performance.now();
let read = Number.NaN;
const onProgress: AnalyseInput['onProgress'] = ({ phase, done }) => {
  if (phase === 'diagnose' && done === 0) read = performance.now();
};
const options = { lang: 'en' as const, thresholds: {}, disabledRules: [], gate: null };
const report = await analyse({ sources: [source], options, source: null, onProgress });
const end = performance.now();
await source.close();
process.stdout.write(JSON.stringify({ readMs: read - begin, diagnoseMs: end - read, findings: report.findings.length }));
