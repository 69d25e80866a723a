import { codeFacts } from '../../src/facts/code/index.ts';
import type { Finding } from '../../src/model/report.ts';
import { REMEDIES } from '../../src/remedies/index.ts';
import { folderSourceTree } from '../../src/source/folder-source-tree.ts';
import { matchStack } from '../../src/source/match-frame.ts';
import { readAhead } from '../../src/source/python-files.ts';
import { PARAMS, VERSIONS } from '../../test/remedies/situations.ts';

/** Examines a folder as one analysis would in which every remedy is asked once, and prints the time of each part, ms, as JSON. Usage: examine-source.ts FOLDER */
const [folder = '.'] = process.argv.slice(2);
const times: Record<string, number> = {};
const timed = <T>(name: string, work: () => T): T => {
  const begin = performance.now();
  const result = work();
  times[name] = (times[name] ?? 0) + performance.now() - begin;
  return result;
};

const tree = timed('list', () => folderSourceTree(folder));
const begin = performance.now();
await readAhead(tree);
times.parse = performance.now() - begin;
const migration = timed('migration', () => codeFacts(tree).migration.occurrences.length);
const frame = { file: '/workspace/project/part0/training_0.py', line: 15, func: 'train', calls: ['__next__'] };
const [place] = timed('frames', () => matchStack(tree, frame));
const locations: Finding['locations'] = place === undefined ? [] : [{ ...place, provenBy: 'call-stack' }];
let advised = 0;
for (const [id, remedy] of REMEDIES) {
  const context = { soc: 'A2' as const, ...VERSIONS[3], params: PARAMS[id]?.[0] ?? {}, source: tree };
  const finding = { rule: 'op-recompile', ranks: [0], locations, confidence: 'high' as const };
  if (timed(id, () => remedy.advise(finding, context)) !== null) advised++;
}
process.stdout.write(JSON.stringify({ times, files: tree.paths.length, migration, placed: locations.length, advised }));
