import { parseArgs } from 'node:util';
import { type Export, type Fault, type FaultKind, type JobSpec, simulate, trueSavingMs, writeProfiles } from './index.ts';

const KINDS: FaultKind[] = [
  'slow-loader',
  'hidden-loader',
  'small-ops',
  'slow-rank',
  'slow-host',
  'stage-imbalance',
  'layout',
  'recompile',
  'buffer-broadcast',
  'sync-per-microstep',
  'rotating-jitter',
  'uneven-batches',
  'slow-link',
  'small-messages',
  'no-overlap',
  'few-micro-batches',
  'expert-imbalance',
  'contention',
  'aicpu-op',
  'cast-pair',
  'weight-cast',
  'vector-chain',
  'few-blocks',
  'loose-matmul',
  'idle-pipes',
  'frequency-drop',
  'unfused',
  'elementwise-chain',
  'unfused-optimizer',
  'zero-fill',
  'look-alike',
];

const USAGE = `node lab/simulator/main.ts --ranks N [--fault KIND[:key=value,...]]... [--out DIR]
  [--level 0|1|2] [--steps N] [--seed N] [--pp 1|2] [--layers N] [--upload RANK,RANK...] [--era 2025-01|2025-11] [--export text|db|both]
KIND: ${KINDS.join(', ')}`;

/** A fault from the command line: `slow-rank:rank=3,factor=1.2`. */
function parseFault(text: string, ranks: number): Fault {
  const [kind = '', options = ''] = text.split(':');
  if (!KINDS.includes(kind as FaultKind)) throw new Error(`unknown fault ${kind}; known: ${KINDS.join(', ')}`);
  const fault: { [key: string]: unknown } = { kind };
  if (kind === 'slow-link') fault.ranks = [0, 1];
  if (kind === 'slow-rank' || kind === 'slow-host') fault.rank = Math.min(1, ranks - 1);
  for (const pair of options.split(',').filter(Boolean)) {
    const [key = '', value = ''] = pair.split('=');
    fault[key] = value.includes('+')
      ? value.split('+').map(Number)
      : value === 'true'
        ? true
        : value === 'false'
          ? false
          : Number.isNaN(Number(value))
            ? value
            : Number(value);
  }
  return fault as Fault;
}

function exportOf(text: string): Export {
  if (text !== 'text' && text !== 'db' && text !== 'both') throw new Error(`unknown export ${text}; known: text, db, both`);
  return text;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      ranks: { type: 'string', default: '8' },
      fault: { type: 'string', multiple: true, default: [] },
      out: { type: 'string' },
      level: { type: 'string', default: '1' },
      steps: { type: 'string', default: '4' },
      seed: { type: 'string', default: '1' },
      pp: { type: 'string', default: '1' },
      layers: { type: 'string', default: '12' },
      upload: { type: 'string' },
      era: { type: 'string', default: '2025-01' },
      export: { type: 'string', default: 'text' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return;
  }
  const ranks = Number(values.ranks);
  const faults = values.fault.map((text) => parseFault(text, ranks));
  const spec: JobSpec = {
    ranks,
    steps: Number(values.steps),
    seed: Number(values.seed),
    level: Number(values.level) as 0 | 1 | 2,
    pp: Number(values.pp) as 1 | 2,
    layers: Number(values.layers),
    era: values.era === '2025-11' ? '2025-11' : '2025-01',
    faults,
    ...(values.upload ? { uploadedRanks: values.upload.split(',').map(Number) } : {}),
  };
  const job = simulate(spec);
  console.log(`step ${job.medianStepMs.toFixed(3)} ms (${job.stepTimesMs.map((ms) => ms.toFixed(3)).join(', ')})`);
  for (const fault of faults) {
    const saving = trueSavingMs(spec, fault);
    console.log(
      `${JSON.stringify(fault)} true saving ${saving.toFixed(3)} ms, ${((100 * saving) / job.medianStepMs).toFixed(2)} % of the step`,
    );
  }
  if (values.out) for (const path of await writeProfiles(job, values.out, { export: exportOf(values.export) })) console.log(path);
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}
