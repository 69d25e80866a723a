import { quoteLiteral } from '../base/phrase.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { isAside } from '../source/readable-paths.ts';
import { choice, words } from './reading/params.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { torchNpuPage } from './wording/documents.ts';

const TITLE = both('Install versions that belong together', '安装配套的版本');

/** Lines that pin torch_npu, in files that install packages. */
const INSTALLS = /(^|\/)(requirements[^/]*\.txt|pyproject\.toml|setup\.(py|cfg)|environment\.ya?ml|[^/]*Dockerfile[^/]*)$|\.(sh|ya?ml)$/;
const PIN = /torch[-_]npu\s*[=~<>!]=?/;
const MAX_PLACES = 5;

function pins(context: RemedyContext): { file: string; line: number; symbol: null }[] {
  if (context.source === null) return [];
  const found: { file: string; line: number; symbol: null }[] = [];
  for (const file of context.source.paths) {
    if (!INSTALLS.test(file) || isAside(file)) continue;
    for (const [i, line] of (context.source.read(file) ?? '').split('\n').entries()) {
      if (PIN.test(line)) found.push({ file, line: i + 1, symbol: null });
      if (found.length >= MAX_PLACES) return found;
    }
  }
  return found;
}

function text(context: RemedyContext) {
  const { params } = context;
  const literal = (name: string): string => quoteLiteral(typeof params[name] === 'string' ? params[name] : '?');
  switch (choice(params, 'kind', ['ranks', 'torch', 'cann'])) {
    case 'ranks': {
      const name = choice(params, 'name', ['torch', 'torch_npu', 'CANN']) ?? 'torch_npu';
      return both(`Use one image on all nodes: ${name} differs between ranks.`, `所有节点使用同一镜像：各卡的 ${name} 不同。`);
    }
    case 'torch':
      return both(
        `Install the torch_npu package of torch ${literal('torch')}: its version starts with the same number.`,
        `安装 torch ${literal('torch')} 对应的 torch_npu 包：两者版本号开头相同。`,
      );
    case 'cann': {
      const expected = words(params, 'expected')
        .map((v) => quoteLiteral(v))
        .join(', ');
      return both(
        `Install CANN ${expected}, or the torch_npu package that came out with CANN ${literal('cann')}.`,
        `安装 CANN ${expected}，或改用与 CANN ${literal('cann')} 配套的 torch_npu 包。`,
      );
    }
    default:
      return both(
        'Install versions of torch, torch_npu and CANN that were released together.',
        '安装配套发布的 torch、torch_npu 与 CANN。',
      );
  }
}

function advise(_: unknown, context: RemedyContext): Advice {
  const places = pins(context);
  return {
    title: TITLE,
    text: prose(
      text(context),
      places.length > 0 ? both('The lines named here pin torch_npu.', '所列位置固定了 torch_npu 的版本。') : null,
      both('The release notes list which package belongs to which CANN.', '发布说明列出了各包与 CANN 的配套关系。'),
    ),
    code: null,
    preconditions: listed(both('The driver and firmware of the cards fit the CANN version.', '驱动与固件同 CANN 版本匹配。')),
    references: [torchNpuPage('release_notes.md')],
    edits: [],
    locations: places,
  };
}

/** Versions of one release. */
export default {
  id: 'match-versions',
  title: TITLE,
  apis: [],
  advise,
} satisfies Remedy;
