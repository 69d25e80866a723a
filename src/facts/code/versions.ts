import type { CodeSite, Occurrence } from '../../model/code.ts';
import { pairingOf, TORCH_NPU_RELEASES, torchOf } from '../../model/releases.ts';
import type { Pin } from '../../source/pins.ts';

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

/** Versions that never existed, or never fitted together, among the pins of each file. */
export function versionOccurrences(pins: readonly Pin[], isChanged: (file: string, first: number, last: number) => boolean): Occurrence[] {
  const found: Occurrence[] = [];
  const at = (pin: Pin): CodeSite => ({
    file: pin.file,
    startLine: pin.line,
    endLine: pin.line,
    symbol: null,
    text: pin.text.slice(0, MAX_TEXT),
    edit: null,
  });
  const touched = (...list: readonly Pin[]): boolean => list.some((pin) => isChanged(pin.file, pin.line, pin.line));
  for (const pin of pins) {
    if (pin.package === 'torch_npu' && touched(pin) && isUnknownLine(pin.version))
      found.push({ kind: 'unknown-package', name: pin.text, replacement: null, confidence: 'high', site: at(pin) });
  }
  // What holds under the same condition in one file is installed together.
  for (const [, own] of Map.groupBy(pins, ({ file, condition }) => `${file}\n${condition}`)) {
    const [torchNpu, torch, cann] = [only(own, 'torch_npu'), only(own, 'torch'), only(own, 'cann')];
    if (torchNpu === null || isUnknownLine(torchNpu.version)) continue;
    const wanted = torchOf(torchNpu.version);
    if (wanted !== null && torch !== null && touched(torch, torchNpu) && !fits(torch.version, wanted)) {
      found.push({
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
    found.push({
      kind: 'cann-pair',
      name: torchNpu.text,
      replacement: null,
      confidence: 'medium',
      params: { cann: cann.version, expected: pairing.expected.join(','), torchNpu: torchNpu.version },
      site: at(cann),
    });
  }
  return found;
}

/** The one version that a repository asks for, wherever it does; null where there are several or none. */
export function pinnedVersion(pins: readonly Pin[], name: Pin['package']): string | null {
  const versions = new Set(pins.filter((pin) => pin.package === name).map((pin) => pin.version.split('+')[0]!));
  const [version] = versions;
  return versions.size === 1 && /^\d+(\.\d+){2}(\.?(post|rc)\d+)?$/.test(version!) ? version! : null;
}

/** The one pin of a package among some; null where there are several versions. */
function only(pins: readonly Pin[], name: Pin['package']): Pin | null {
  const own = pins.filter((pin) => pin.package === name);
  return new Set(own.map((pin) => pin.version)).size === 1 ? own[0]! : null;
}

function fits(torch: string, wanted: string): boolean {
  if (torch.includes('*')) return wanted.startsWith(torch.slice(0, torch.indexOf('*')));
  return padded(torch.split('+')[0]!) === wanted;
}
