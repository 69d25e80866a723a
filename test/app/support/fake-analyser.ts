import type { AnalyseArtifact } from '../../../src/app/analysis-protocol.ts';
import { ARCHIVE_ERROR } from '../../../src/app/analysis-protocol.ts';
import { AdviseError } from '../../../src/base/errors.ts';
import type { Finding, Report } from '../../../src/model/report.ts';
import { sourceTreeFrom } from '../../../src/source/source-tree-from.ts';
import { openSource } from '../../../src/sources/index.ts';
import { readWhole } from '../../../src/sources/source.ts';

/** What a test writes into `plan.json` of an artifact: the report to make of it. */
export interface Plan {
  /** Busy or waiting time of the analysis. */
  delayMs?: number;
  spinMs?: number;
  allocateMb?: number;
  crash?: boolean;
  /** Tells its progress rank by rank, each of them taking so long. */
  ranks?: { count: number; everyMs: number };
  /** Told where there is something to compare with. */
  comparison?: NonNullable<Report['comparison']>;
  findings?: { id: string; likely?: number | null; edit?: { file: string; line: number; after: string } }[];
}

function toFinding(plan: NonNullable<Plan['findings']>[number], before: string | null): Finding {
  const { id, likely = 94, edit } = plan;
  return {
    id,
    rule: 'dataloader-stall',
    category: 'data',
    title: `Data loader starves all ranks (${id})`,
    severity: 'high',
    confidence: 'high',
    ranks: [0, 1],
    steps: [50],
    groups: [],
    saving: {
      basis: likely === null ? 'bound' : 'modelled',
      perStepMs: { floor: 0, likely, ceiling: 120 },
      shareOfStep: 0.1,
      method: 'made up',
    },
    symptomOf: null,
    evidence: [{ text: 'the card had nothing to do', source: 'rank0/trace_view.json', rank: 0, step: 50 }],
    caveats: [],
    locations: edit === undefined ? [] : [{ file: edit.file, line: edit.line, symbol: 'main', provenBy: 'call-stack' }],
    recommendations: [
      {
        remedy: 'dataloader-workers',
        title: 'More loader workers',
        text: 'Let workers load the data.',
        code: null,
        edits:
          edit === undefined || before === null
            ? []
            : [{ file: edit.file, startLine: edit.line, endLine: edit.line, before, after: edit.after, kind: 'suggestion' }],
        preconditions: ['the dataset can be opened by workers'],
        references: [],
      },
    ],
  };
}

/** The analyser in a process of its own, which must know no secret. */
export const analyseArtifact: AnalyseArtifact = (request, hooks) => {
  if (Object.keys(process.env).some((name) => /TOKEN|SECRET|KEY|DATABASE/.test(name))) throw new Error('the environment holds secrets');
  return analysePlan(request, hooks);
};

/** A small real analyser: opens the upload as the product does and makes the report its plan asks for. */
export const analysePlan: AnalyseArtifact = async (request, { onProgress, signal }) => {
  const tree = request.source === null ? null : sourceTreeFrom(request.source);
  let plan: Plan | null = null;
  const inputs: Report['inputs'] = [];
  for (const path of request.paths) {
    const source = await openSource(path).catch((error: unknown) => {
      if (error instanceof AdviseError) throw new AdviseError(`${ARCHIVE_ERROR}${error.code}`, error.message, error.hint);
      throw error;
    });
    for (const entry of source.entries) {
      const isPlan = entry.path.endsWith('plan.json');
      if (isPlan) plan = JSON.parse((await readWhole(entry, 1_000_000))!.toString('utf8')) as Plan;
      inputs.push({ path: entry.path, kind: 'plan', bytes: entry.bytes, status: isPlan ? 'used' : 'ignored', note: '' });
    }
    await source.close();
  }
  const { count = 0, everyMs = 0 } = plan?.ranks ?? {};
  for (let done = 0; done <= count && count > 0; done++) {
    onProgress({ phase: 'read', done: done * 1e6, total: count * 1e6, ranks: { done, total: count } });
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  if (count > 0) onProgress({ phase: 'diagnose', done: 0, total: 1 });
  if (plan?.crash) process.abort();
  if (plan?.allocateMb) {
    const held: Buffer[] = [];
    for (let i = 0; i < plan.allocateMb; i++) {
      held.push(Buffer.alloc(1024 * 1024, 1));
      if (i % 16 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await new Promise((resolve) => setTimeout(resolve, 3000));
  }
  const until = Date.now() + (plan?.spinMs ?? 0);
  while (Date.now() < until) {
    const slice = Date.now() + 20;
    while (Date.now() < slice) Math.sqrt(Math.random());
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (plan?.delayMs) await new Promise((resolve) => setTimeout(resolve, plan.delayMs));
  signal.throwIfAborted();

  const findings = (plan?.findings ?? []).map((finding) => {
    const lines = finding.edit === undefined ? null : (tree?.read(finding.edit.file)?.split('\n') ?? null);
    return toFinding(finding, lines?.[(finding.edit?.line ?? 1) - 1] ?? null);
  });
  const likely = findings.reduce((sum, { saving }) => sum + (saving?.perStepMs.likely ?? 0), 0);
  return {
    schema: 'npu-advisor.report/1',
    tool: { name: 'npu-advisor', version: '0.0.0' },
    lang: request.options.lang,
    verdict: {
      outcome: plan === null ? 'no-data' : findings.length === 0 ? 'quiet' : 'causes',
      text: 'the cards waited for the data loader',
    },
    job: {
      ranks: [0, 1],
      unrankedFolders: 0,
      worldSize: 2,
      worldSizeBasis: null,
      missingRanks: [],
      steps: [50],
      droppedSteps: [],
      stepTimeMs: 812,
      stepBasis: 'one captured step',
      stepNoiseMs: null,
      framework: 'PyTorch',
      samplesPerStep: null,
      samplesPerSecond: null,
      tokensPerSecond: null,
      versions: { cann: null, torchNpu: null, torch: null },
      device: null,
      level: 'Level1',
    },
    breakdown: [],
    findings,
    checked: [{ rule: 'dataloader-stall', outcome: findings.length > 0 ? 'finding' : 'pass', reason: '' }],
    totals: { claimedMsPerStep: { likely: Math.min(likely, 812), ceiling: Math.min(812, findings.length * 120) }, unexplainedIdleMs: null },
    comparison: (request.baseline ?? []).length > 0 ? (plan?.comparison ?? null) : null,
    gate: null,
    inputs,
    notes: [],
    missing: [],
    views: {},
  };
};
