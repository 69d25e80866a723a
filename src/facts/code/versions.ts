import type { CodeSite, Occurrence } from '../../model/code.ts';
import { pairingOf, TORCH_NPU_RELEASES, torchOf } from '../../model/releases.ts';
import type { SourceTree } from '../../model/source-tree.ts';
import { type Pin, pinsOf } from '../../source/pins.ts';

const MAX_TEXT = 160;

/** Torch versions that a torch_npu was ever made for, without the newest line, of which there may be more by now. */
const TORCH_LINES: ReadonlySet<string> = new Set(TORCH_NPU_RELEASES.flatMap(({ packages }) => packages.map((name) => torchOf(name)!)));
const NEWEST = Math.max(...[...TORCH_LINES].map(rankOf));

function rankOf(version: string): number {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major * 1_000 + minor;
}

/** Major and minor numbers that no torch_npu has, such as 1.12. Patch versions are left open: builds for one project may exist. */
function isUnknownLine(version: string): boolean {
  const rank = rankOf(version);
  return rank > 0 && rank <= NEWEST && ![...TORCH_LINES].some((line) => rankOf(line) === rank);
}

const padded = (version: string): string => {
  const parts = /^\d+(?:\.\d+)*/.exec(version)?.[0].split('.') ?? [];
  return [...parts, '0', '0'].slice(0, Math.max(3, parts.length)).join('.');
};

export interface VersionFacts {
  readonly occurrences: readonly Occurrence[];
  readonly torchNpu: string | null;
}

/** Versions that never existed, or never fitted together, among the pins of each file. */
export function versionFacts(tree: SourceTree, isChanged: (file: string, first: number, last: number) => boolean): VersionFacts {
  const pins = pinsOf(tree);
  const occurrences: Occurrence[] = [];
  const at = (pin: Pin): CodeSite => ({
    file: pin.file,
    startLine: pin.line,
    endLine: pin.line,
    symbol: null,
    text: pin.text.slice(0, MAX_TEXT),
    edit: null,
  });
  const touched = (...list: readonly Pin[]): boolean => list.some((pin) => isChanged(pin.file, pin.line, pin.line));
  for (const [, own] of Map.groupBy(pins, ({ file }) => file)) {
    const npu = own.filter((pin) => pin.package === 'torch_npu');
    for (const pin of npu) {
      if (touched(pin) && isUnknownLine(pin.version))
        occurrences.push({ kind: 'unknown-package', name: pin.text, replacement: null, confidence: 'high', site: at(pin) });
    }
    const [torchNpu, torch, cann] = [
      only(npu),
      only(own.filter((pin) => pin.package === 'torch')),
      only(own.filter((pin) => pin.package === 'cann')),
    ];
    if (torchNpu === null || isUnknownLine(torchNpu.version)) continue;
    const wanted = torchOf(torchNpu.version);
    if (wanted !== null && torch !== null && touched(torch, torchNpu) && !fits(torch.version, wanted)) {
      occurrences.push({
        kind: 'torch-pair',
        name: torchNpu.text,
        replacement: `torch==${wanted}`,
        confidence: 'high',
        params: { torch: torch.text, wanted, torchNpu: torchNpu.version },
        site: at(torch),
      });
    }
    if (cann === null || !touched(cann, torchNpu)) continue;
    const pairing = pairingOf(torchNpu.version, cann.version);
    // A newer CANN mostly works; an older one lacks operators that the package calls.
    if (pairing.outcome !== 'never' || pairing.cann === 'newer') continue;
    occurrences.push({
      kind: 'cann-pair',
      name: torchNpu.text,
      replacement: null,
      confidence: 'medium',
      params: { cann: cann.version, expected: pairing.expected.join(','), torchNpu: torchNpu.version },
      site: at(cann),
    });
  }
  const exact = new Set(pins.filter((pin) => pin.package === 'torch_npu').map((pin) => pin.version));
  return { occurrences, torchNpu: exact.size === 1 ? [...exact][0]! : null };
}

/** The one pin that always holds; null where there are several, or it holds only sometimes. */
function only(pins: readonly Pin[]): Pin | null {
  if (pins.some((pin) => pin.condition !== null)) return null;
  return new Set(pins.map((pin) => pin.version)).size === 1 ? pins[0]! : null;
}

function fits(torch: string, wanted: string): boolean {
  if (torch.includes('*')) return wanted.startsWith(torch.slice(0, torch.indexOf('*')));
  return padded(torch.split('+')[0]!) === wanted;
}
