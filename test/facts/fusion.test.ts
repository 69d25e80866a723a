import { describe, expect, test } from 'vitest';
import type { FusionSequence, RankFacts } from '../../src/model/facts.ts';
import { factsFromJson, factsToJson } from '../../src/model/facts-json.ts';
import { factsOfTables, filler, type KernelRow, kernelTable, vector } from '../support/kernel-table.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { factsOf, simulated } from '../support/simulated.ts';

type T = readonly [shape: string, type: string];
const BF = 'DT_BF16';
const F = 'FLOAT';

function k(type: string, inputs: readonly T[], outputs: readonly T[], more: Partial<KernelRow> = {}): KernelRow {
  return {
    type,
    us: 20,
    inShapes: inputs.map(([s]) => s).join(';'),
    inTypes: inputs.map(([, t]) => t).join(';'),
    outShapes: outputs.map(([s]) => s).join(';'),
    outTypes: outputs.map(([, t]) => t).join(';'),
    ...more,
  };
}

async function factsWith(rows: readonly KernelRow[]): Promise<RankFacts> {
  return factsOfTables({ 'kernel_details.csv': kernelTable([filler(500), ...rows, filler(500)]) });
}
const found = async (rows: readonly KernelRow[]): Promise<readonly FusionSequence[]> => (await factsWith(rows)).fusion!.sequences;
const named = async (rows: readonly KernelRow[]): Promise<(string | null)[]> => (await found(rows)).map((s) => s.pattern);

const x: T = ['4096,1024', BF];
const wide: T = ['4096,1024', F];
const row: T = ['4096,1', F];
const gamma: T = ['1024', BF];

/** RMSNorm as LLaMA-like models of transformers write it. */
const rmsNorm: KernelRow[] = [
  k('Cast', [x], [wide]),
  k('Pows', [wide], [wide]),
  k('ReduceMean', [wide], [row]),
  k('Adds', [row], [row]),
  k('Rsqrt', [row], [row]),
  k('Mul', [wide, row], [wide]),
  k('Cast', [wide], [x]),
  k('Mul', [gamma, x], [x]),
];
const replaced = (rows: readonly KernelRow[], at: number, by: KernelRow): KernelRow[] => rows.map((r, i) => (i === at ? by : r));

describe('RMSNorm and LayerNorm', () => {
  test('eight kernels, and what one kernel would have to move', async () => {
    const [s, ...others] = await found(rmsNorm);
    expect(others).toEqual([]);
    expect(s).toMatchObject({ pattern: 'rms-norm', phase: 'forward', count: 1, size: 8, shape: '4096,1024', dataType: BF });
    const tensor = 4096 * 1024 * 2;
    // Reads x and γ, writes y and the root of each row.
    expect(s!.needed).toBe(2 * tensor + 4096 * 4 + 1024 * 2);
    expect(s!.bytes).toBeGreaterThan(17 * tensor);
  });

  test('in fp32 without casts; x · x for the square; the sum divided; a root and a division', async () => {
    const w: T = ['1024', F];
    expect(
      await named([
        k('Mul', [wide, wide], [wide]),
        k('ReduceSum', [wide], [row]),
        k('Muls', [row], [row]),
        k('Add', [row, ['', F]], [row]),
        k('Sqrt', [row], [row]),
        k('RealDiv', [wide, row], [wide]),
        k('Mul', [wide, w], [wide]),
      ]),
    ).toEqual(['rms-norm']);
  });

  test('with the mean taken off first it is a LayerNorm', async () => {
    const w: T = ['1024', F];
    expect(
      await named([
        k('ReduceMean', [wide], [row]),
        k('Sub', [wide, row], [wide]),
        k('Pows', [wide], [wide]),
        k('ReduceMean', [wide], [row]),
        k('Adds', [row], [row]),
        k('Rsqrt', [row], [row]),
        k('Mul', [wide, row], [wide]),
        k('Mul', [wide, w], [wide]),
        k('Add', [wide, w], [wide]),
      ]),
    ).toEqual(['layer-norm']);
  });

  test('kernels without shapes and scalars between do not matter', async () => {
    const memset: KernelRow = { type: 'MemSet', us: 2 };
    expect(
      await named([
        ...rmsNorm.slice(0, 2),
        memset,
        ...rmsNorm.slice(2, 4),
        k('Cast', [['', 'INT32']], [['', 'UINT64']]),
        ...rmsNorm.slice(4),
      ]),
    ).toContain('rms-norm');
  });

  test.each([
    ['the root of other rows', 4, k('Rsqrt', [['2048,1', F]], [['2048,1', F]])],
    ['the mean over another axis', 2, k('ReduceMean', [wide], [['1,1024', F]])],
    ['a square of another tensor', 1, k('Pows', [['4096,512', F]], [['4096,512', F]])],
    ['the square in another type than the mean reads', 1, k('Pows', [wide], [x])],
    ['no weight', 7, k('Mul', [x, x], [x])],
    ['a weight of another size', 7, k('Mul', [['4096', BF], x], [x])],
    ['no ε', 3, k('Muls', [row], [row])],
    ['scaled by something else', 5, k('Sub', [wide, row], [wide])],
  ] as [string, number, KernelRow][])('quiet: %s', async (_, at, by) => {
    expect(await named(replaced(rmsNorm, at, by))).not.toContain('rms-norm');
  });

  test('quiet: the fused operator is there already', async () => {
    expect(await found([k('RmsNorm', [x, gamma], [x, row]), k('RmsNormGrad', [x, x, row, gamma], [x, gamma])])).toEqual([]);
  });

  test('quiet: a collective ran between the sum and its use', async () => {
    const reduce: KernelRow = { us: 900, name: 'hcom_allReduce__1_1_1', core: 'HCCL' };
    expect(await named([...rmsNorm.slice(0, 3), reduce, ...rmsNorm.slice(3)])).not.toContain('rms-norm');
  });
});

describe('activations', () => {
  const half: T = ['4096,2048', BF];
  const both: T = ['4096,4096', BF];

  test('SwiGLU with and without slices', async () => {
    const plain = [k('Swish', [half], [half]), k('Mul', [half, half], [half])];
    const [sliced] = await found([k('Slice', [both, ['2', 'INT64']], [half]), k('Slice', [both, ['2', 'INT64']], [half]), ...plain]);
    expect(sliced).toMatchObject({ pattern: 'swiglu', size: 4, needed: 3 * 4096 * 2048 * 2 });
    expect((await found(plain))[0]).toMatchObject({ pattern: 'swiglu', size: 2 });
  });

  test.each([
    ['by a factor per column', [k('Swish', [half], [half]), k('Mul', [half, ['2048', BF]], [half])]],
    [
      'by a tensor of another type',
      [
        k('Swish', [half], [half]),
        k(
          'Mul',
          [
            ['4096,2048', F],
            ['4096,2048', F],
          ],
          [['4096,2048', F]],
        ),
      ],
    ],
    ['a plain SiLU', [k('Swish', [half], [half]), k('MatMulV2', [half, ['2048,1024', BF]], [['4096,1024', BF]], { core: 'AI_CORE' })]],
    ['the fused one', [k('SwiGlu', [both], [half])]],
  ] as [string, KernelRow[]][])('quiet: SiLU multiplied %s', async (_, rows) => {
    expect(await named(rows)).not.toContain('swiglu');
  });

  const one = (type: string): KernelRow => k(type, [half], [half]);
  const two = (type: string): KernelRow => k(type, [half, half], [half]);
  test('GELU by tanh, with a power or with products, and by erf', async () => {
    const tail = [one('Tanh'), one('Adds'), two('Mul'), one('Muls')];
    expect(await named([one('Pows'), one('Muls'), two('Add'), one('Muls'), ...tail])).toEqual(['gelu']);
    expect(await named([two('Mul'), one('Muls'), one('Adds'), two('Mul'), one('Muls'), ...tail])).toEqual(['gelu']);
    expect(await named([one('Muls'), one('Erf'), one('Adds'), two('Mul'), one('Muls')])).toEqual(['gelu']);
  });

  test('quiet: a tanh after a scale is no GELU', async () => {
    expect(await named([one('Muls'), one('Tanh'), one('Muls')])).not.toContain('gelu');
    expect(await named([one('Muls'), one('Tanh'), one('Adds'), one('Muls')])).not.toContain('gelu');
  });
});

describe('rotary embedding', () => {
  const q: T = ['8,512,16,64', BF];
  const h: T = ['8,512,16,32', BF];
  const table: T = ['1,512,1,64', BF];
  const rows = [
    k('Mul', [q, table], [q]),
    k('Slice', [q], [h]),
    k('Slice', [q], [h]),
    k('Neg', [h], [h]),
    k('ConcatD', [h, h], [q]),
    k('Mul', [q, table], [q]),
    k('Add', [q, q], [q]),
  ];

  test('both products, the turned halves and the sum', async () => {
    expect((await found(rows))[0]).toMatchObject({ pattern: 'rotary', size: 7, needed: 2 * 8 * 512 * 16 * 64 * 2 + 2 * 512 * 64 * 2 });
  });

  test('quiet: a negation that is not joined again, a sum of something else', async () => {
    expect(await named(rows.filter((r) => r.type !== 'ConcatD'))).not.toContain('rotary');
    expect(
      await named(
        replaced(
          rows,
          6,
          k(
            'Add',
            [
              ['8,512,1024', F],
              ['8,512,1024', F],
            ],
            [['8,512,1024', F]],
          ),
        ),
      ),
    ).not.toContain('rotary');
  });
});

describe('scores', () => {
  const flat: T = ['128,512,512', BF];
  const scores: T = ['8,16,512,512', BF];
  const mask: T = ['1,1,512,512', 'BOOL'];
  const q: T = ['128,512,64', BF];
  const qk = k('BatchMatMulV2', [q, ['128,64,512', BF]], [flat], { core: 'AI_CORE', us: 100 });
  const pv = k('BatchMatMulV2', [flat, q], [q], { core: 'AI_CORE', us: 100 });
  const middle = [k('Muls', [scores], [scores]), k('MaskedFill', [scores, mask], [scores]), k('SoftmaxV2', [scores], [scores])];

  test('between two products it is attention, whatever views lie between', async () => {
    const [s] = await found([qk, ...middle, pv]);
    expect(s).toMatchObject({ pattern: 'attention', size: 3, needed: 0 });
  });

  test('the 2023 form: casts, dropout', async () => {
    const f: T = ['8,16,512,512', F];
    const bits: T = ['4194304', 'UINT8'];
    const rows = [
      qk,
      k('RealDiv', [scores, ['', BF]], [scores]),
      k('Cast', [scores], [f]),
      k('Add', [f, ['1,1,512,512', F]], [f]),
      k('SoftmaxV2', [f], [f]),
      k('Cast', [f], [scores]),
      k('DropOutDoMask', [scores, bits, ['', BF]], [scores]),
      pv,
    ];
    expect(await named(rows)).toEqual(['attention']);
  });

  test('without the products it is a masked softmax, if the mask is boolean and the rows fit', async () => {
    expect(await named(middle)).toEqual(['masked-softmax']);
    expect(await named(replaced(middle, 1, k('Add', [scores, ['1,1,512,512', BF]], [scores])))).not.toContain('masked-softmax');
    const odd: T = ['8,16,512,500', BF];
    expect(
      await named([k('Muls', [odd], [odd]), k('MaskedFill', [odd, ['1,1,512,500', 'BOOL']], [odd]), k('SoftmaxV2', [odd], [odd])]),
    ).not.toContain('masked-softmax');
  });

  test('quiet: a softmax over classes, products of other sizes', async () => {
    expect(await named([k('SoftmaxV2', [['4096,1000', F]], [['4096,1000', F]])])).toEqual([]);
    const other = k(
      'BatchMatMulV2',
      [
        ['128,512,256', BF],
        ['128,256,64', BF],
      ],
      [q],
      { core: 'AI_CORE', us: 100 },
    );
    expect(await named([qk, ...middle, other])).not.toContain('attention');
  });

  test('softmax by its formula, and its logarithm', async () => {
    const logits: T = ['4096,32000', F];
    const r: T = ['4096,1', F];
    const head = [
      k('ReduceMax', [logits], [r]),
      k('Sub', [logits, r], [logits]),
      k('Exp', [logits], [logits]),
      k('ReduceSum', [logits], [r]),
    ];
    expect(await named([...head, k('RealDiv', [logits, r], [logits])])).toEqual(['softmax']);
    expect((await found([...head, k('Log', [r], [r]), k('Sub', [logits, r], [logits])]))[0]).toMatchObject({ pattern: 'softmax', size: 6 });
    // Parallel over the vocabulary the ranks exchange the maximum: nothing to fuse.
    const exchange: KernelRow = { us: 300, name: 'hcom_allReduce__1_1_1', core: 'HCCL' };
    expect(await named([head[0]!, exchange, ...head.slice(1), k('RealDiv', [logits, r], [logits])])).not.toContain('softmax');
  });
});

describe('copies around products', () => {
  const product = (a: T, b: T, out: T): KernelRow =>
    k(a[0].split(',').length === 2 ? 'MatMulV2' : 'BatchMatMulV2', [a, b], [out], { core: 'AI_CORE', us: 100 });

  test('the last two axes swapped, and read as they are', async () => {
    const w: T = ['4096,1024', BF];
    const t: T = ['1024,4096', BF];
    expect(await named([k('Transpose', [w, ['2', 'INT64']], [t]), product(['512,1024', BF], t, ['512,4096', BF])])).toEqual([
      'transposed-product',
    ]);
  });

  test('quiet: heads merged into one axis need the copy', async () => {
    const heads: T = ['8,16,512,64', BF];
    const rows = [k('Transpose', [heads], [['8,512,16,64', BF]]), product(['4096,1024', BF], ['1024,1024', BF], ['4096,1024', BF])];
    expect(await named(rows)).toEqual([]);
  });

  test('the first two axes swapped around a batched product', async () => {
    const a: T = ['16,128,512', BF];
    const rows = [
      k('AsStrided', [['128,16,576', BF]], [a]),
      product(a, ['16,512,128', BF], ['16,128,128', BF]),
      k('Transpose', [['16,128,128', BF]], [['128,16,128', BF]]),
    ];
    expect((await found(rows))[0]).toMatchObject({ pattern: 'transposed-batch', size: 2 });
  });
});

describe('experts', () => {
  const tokens: T = ['4096,1024', BF];
  const body = (rows: number, weight = '1024,4096'): KernelRow[] => [
    k('NonZero', [['4096', 'BOOL']], [[`${rows},1`, 'INT64']]),
    k('GatherV2', [tokens, [`${rows}`, 'INT64']], [[`${rows},1024`, BF]]),
    k(
      'MatMulV2',
      [
        [`${rows},1024`, BF],
        [weight, BF],
      ],
      [[`${rows},4096`, BF]],
      { core: 'AI_CORE' },
    ),
    k('Swish', [[`${rows},4096`, BF]], [[`${rows},4096`, BF]]),
    k(
      'MatMulV2',
      [
        [`${rows},4096`, BF],
        ['4096,1024', BF],
      ],
      [[`${rows},1024`, BF]],
      { core: 'AI_CORE' },
    ),
    k('InplaceIndexAdd', [tokens, [`${rows}`, 'INT64'], [`${rows},1024`, BF]], [tokens]),
  ];

  test('A18: experts of unequal load are one loop, repeated as often as there are experts', async () => {
    const [s, ...others] = await found([600, 400, 512, 480, 700, 300].flatMap((n) => body(n)));
    expect(others).toEqual([]);
    expect(s).toMatchObject({ pattern: 'expert-loop', repeats: 6, size: 36, count: 1 });
  });

  test('quiet: three are layers, and other weights are other layers', async () => {
    expect(await named([600, 400, 512].flatMap((n) => body(n)))).not.toContain('expert-loop');
    expect(await named([0, 1, 2, 3, 4].flatMap((i) => body(512, `1024,${4096 + i}`)))).not.toContain('expert-loop');
  });
});

describe('chains', () => {
  const t: T = ['4096,8192', BF];
  const pipes = { more: vector(0.2, 0.9, 0.7) };
  const link = (type: string, more: Partial<KernelRow> = {}): KernelRow => k(type, [t], [t], { ...pipes, ...more });
  const cut = (): KernelRow => filler(100);

  test('defect of peers: overlapping windows of a chain are not counted again', async () => {
    const facts = await factsWith(
      Array.from({ length: 6 }, () => [link('Abs'), link('Log'), link('Muls'), link('Exp'), link('Neg'), cut()]).flat(),
    );
    const chains = facts.fusion!.sequences;
    expect(chains).toHaveLength(1);
    expect(chains[0]).toMatchObject({ pattern: null, count: 6, size: 5, types: ['Abs', 'Log', 'Muls', 'Exp', 'Neg'] });
    expect(new Set(chains[0]!.nodes).size).toBe(30);
    expect(chains[0]!.ns).toBeCloseTo(6 * 5 * 20_000, 3);
    expect(chains[0]!.needed).toBe(2 * 4096 * 8192 * 2);
    expect(chains[0]!.bytes).toBe(10 * 4096 * 8192 * 2);
  });

  test('a loop without a break is as many chains as it has turns', async () => {
    const chains = await found(Array.from({ length: 7 }, () => [link('Abs'), link('Log'), link('Muls')]).flat());
    expect(chains).toHaveLength(1);
    expect(chains[0]).toMatchObject({ count: 7, size: 3 });
    expect(new Set(chains[0]!.nodes).size).toBe(21);
  });

  test('other operands are read as before; kernels on other tensors may stand between', async () => {
    const small = k('Adds', [['64', F]], [['64', F]]);
    const [s] = await found([link('Abs'), small, k('Mul', [t, t], [t], pipes), small, small, k('Add', [t, ['8192', BF]], [t], pipes)]);
    const tensor = 4096 * 8192 * 2;
    expect(s).toMatchObject({ size: 3, needed: 3 * tensor + 8192 * 2 });
  });

  test.each([
    ['two kernels are an operator and its neighbour', [link('Abs'), link('Log')]],
    ['the same type again works on another tensor', [link('Mul'), link('Mul'), link('Mul'), link('Mul')]],
    [
      'the same types in order, each on a tensor of another size',
      ['Abs', 'Log', 'Muls', 'Exp'].map((type, i) => k(type, [[`4096,${1024 << i}`, BF]], [[`4096,${1024 << i}`, BF]], pipes)),
    ],
    ['the same types in order, each in another type', [link('Abs'), k('Log', [['4096,8192', F]], [['4096,8192', F]]), link('Muls')]],
    [
      'a collective between',
      [link('Abs'), link('Log'), { us: 900, name: 'hcom_allReduce__1_1_1', core: 'HCCL' }, link('Muls'), link('Exp')],
    ],
    ['bound by arithmetic', ['Abs', 'Log', 'Muls', 'Exp'].map((type) => link(type, { more: vector(0.9, 0.3, 0.2) }))],
    ['on the AI CPU', ['Abs', 'Log', 'Muls', 'Exp'].map((type) => link(type, { core: 'AI_CPU' }))],
    ['casts that undo each other', [k('Cast', [t], [['4096,8192', F]]), k('Cast', [['4096,8192', F]], [t])]],
    ['layout kernels', [link('Transpose'), link('TransData'), link('TensorMove')]],
  ] as [string, KernelRow[]][])('quiet: %s', async (_, rows) => {
    expect((await found([...rows, cut()])).filter((s) => s.pattern === null)).toEqual([]);
  });

  test('an island in fp32 is one chain with its casts', async () => {
    const f: T = ['4096,8192', F];
    const rows = [k('Cast', [t], [f]), k('Exp', [f], [f]), k('Adds', [f], [f]), k('Cast', [f], [t])];
    expect((await found(rows))[0]).toMatchObject({ types: ['Cast', 'Exp', 'Adds', 'Cast'], needed: 2 * 4096 * 8192 * 2 });
  });
});

describe('dynamic shapes', () => {
  test('beyond 60 kinds those of the same types are told together, and none is lost', async () => {
    const of = (n: number): KernelRow[] => {
      const t: T = [`${1024 + 8 * n},512`, BF];
      return ['Abs', 'Log', 'Muls'].map((type) => k(type, [t], [t]));
    };
    const facts = await factsWith(Array.from({ length: 100 }, (_, n) => [...of(n), filler(50)]).flat());
    const { sequences } = facts.fusion!;
    expect(sequences).toHaveLength(61);
    const mixed = sequences.find((s) => s.shape === '*')!;
    expect(mixed).toMatchObject({ count: 40, size: 3, types: ['Abs', 'Log', 'Muls'] });
    expect(mixed.bytes / mixed.needed).toBeCloseTo(3, 6);
    expect(new Set(sequences.flatMap((s) => [...s.nodes])).size).toBe(300);
  });
});

describe('what the profile has to hold', () => {
  test('without output shapes, and at Level0, nothing is known', async () => {
    const bare = rmsNorm.map(({ outShapes: _, outTypes: __, ...r }) => r);
    expect((await factsWith(bare)).fusion?.sequences ?? []).toEqual([]);
    const { ranks } = await simulated({ ranks: 2, level: 0, faults: [{ kind: 'unfused', of: 'rms-norm' }] });
    expect(ranks[0]!.fusion).toBeNull();
  });

  test('they travel in a digest, and nodes outside the tape are refused', async () => {
    const { ranks } = await simulated({ ranks: 2, faults: [{ kind: 'unfused', of: 'swiglu' }, { kind: 'zero-fill' }] });
    const back = factsFromJson(factsToJson(ranks));
    expect(back[0]!.fusion).toEqual(ranks[0]!.fusion);
    expect(back[0]!.optimizers).toEqual(ranks[0]!.optimizers);
    const first = ranks[0]!.fusion!.sequences[0]!;
    const wrong = { ...ranks[0]!, fusion: { sequences: [{ ...first, nodes: first.nodes.map(() => 9_999_999) }] } };
    expect(() => factsFromJson(factsToJson([wrong]))).toThrow(/damaged/);
    const short = { ...ranks[0]!, fusion: { sequences: [{ ...first, nodes: first.nodes.slice(1) }] } };
    expect(() => factsFromJson(factsToJson([short]))).toThrow(/damaged/);
  });
});

describe('simulated layers', () => {
  test('every RMSNorm of 12 layers and the head, forward and backward, in each of 4 steps', async () => {
    const { ranks } = await simulated({ ranks: 2, faults: [{ kind: 'unfused', of: 'rms-norm' }] });
    const { sequences } = ranks[0]!.fusion!;
    expect(sequences.map((s) => [s.pattern, s.phase, s.count, s.size])).toEqual([
      ['rms-norm', 'backward', 100, 14],
      ['rms-norm', 'forward', 100, 8],
    ]);
    const all = sequences.flatMap((s) => [...s.nodes]);
    expect(new Set(all).size).toBe(all.length);
  });

  test('types of formulas on tensors that do not belong together are nothing', async () => {
    const { ranks } = await simulated({ ranks: 2, faults: [{ kind: 'look-alike' }] });
    for (const r of ranks) expect(r.fusion!.sequences).toEqual([]);
  });
});

describe.skipIf(!HAVE_PROFILES)(`real profiles${WHY_SKIPPED}`, () => {
  test('text/level1 and level2: a convolution network has none of it', async () => {
    for (const set of [PATHS.level1, PATHS.level2]) for (const r of await factsOf(set)) expect(r.fusion!.sequences).toEqual([]);
  });

  test('text/level0: no shapes', async () => {
    for (const r of await factsOf(PATHS.level0)) expect(r.fusion).toBeNull();
  });

  test('st/level2: RMSNorm, SwiGLU, rotary and attention are fused already', async () => {
    const ranks = await factsOf(PATHS.st);
    expect(ranks.map((r) => r.fusion === null)).toEqual([false, true, false, true]);
    for (const r of ranks) for (const s of r.fusion?.sequences ?? []) expect(s.pattern).toBeNull();
  });

  test('a GPT of 2023: two layers whose scores go through memory around a fused softmax', async () => {
    const [r] = await factsOf(PATHS.arithmetic);
    const named_ = r!.fusion!.sequences.filter((s) => s.pattern !== null);
    expect(named_.map((s) => [s.pattern, s.count, s.types.join()])).toEqual([['attention', 2, 'Mul,ScaledMaskedSoftmax,DropOutDoMask']]);
  });
});
