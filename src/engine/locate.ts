import type { Frame } from '../model/capture.ts';
import type { Location } from '../model/report.ts';
import type { SourceTree } from '../model/source-tree.ts';
import { toldLocation } from '../report/build.ts';
import { tellingCalls } from '../source/holds-call.ts';
import { couldBeHere, type MatchedFrame, matchStack } from '../source/match-frame.ts';

/** Frames asked about at most; a report names fewer. */
const MAX_MISSING = 64;

/** Files that frames name and the source does not hold, as the profile writes them. */
export function missingFiles(source: SourceTree, frames: readonly Frame[]): string[] {
  const files = new Set<string>();
  for (const frame of frames) {
    if (matchStack(source, frame).length > 0) continue;
    for (const { file } of [frame, ...(frame.installed ?? []), ...(frame.outer ?? [])]) if (couldBeHere(file)) files.add(file);
  }
  return [...files].slice(0, MAX_MISSING);
}

/** A line that names what it calls, and how far it has moved since the profile was taken. */
export interface Witness {
  readonly line: number;
  readonly shift: number;
}

/** Frames of a profile looked at for that. */
const MAX_WITNESSES = 400;

/** By file of the repository, the lines that prove where the profiled code stands now. */
export function witnessesOf(source: SourceTree, frames: readonly Frame[]): ReadonlyMap<string, readonly Witness[]> {
  const byFile = new Map<string, Witness[]>();
  for (const frame of frames.filter(({ calls = [] }) => tellingCalls(calls).length > 0).slice(0, MAX_WITNESSES)) {
    const places = matchStack(source, frame);
    const [only] = places;
    if (places.length !== 1 || only === undefined || only.isOpen === true) continue;
    const line = only.movedFrom ?? only.line;
    const list = byFile.get(only.file) ?? [];
    byFile.set(only.file, [...list, { line, shift: only.line - line }]);
  }
  return byFile;
}

/** A line that names nothing it calls proves nothing by itself: it stands as far off as the nearest line that does. */
function settled(source: SourceTree, frame: Frame, witnesses: ReadonlyMap<string, readonly Witness[]>): MatchedFrame[] {
  const found = matchStack(source, frame);
  const files = found.length > 0 ? found.map(({ file }) => file) : [...witnesses.keys()].filter((file) => frame.file.endsWith(file));
  const [file] = files;
  if (tellingCalls(frame.calls ?? []).length > 0 || file === undefined || files.length > 1) return found;
  const near = (witnesses.get(file) ?? []).toSorted((a, b) => Math.abs(a.line - frame.line) - Math.abs(b.line - frame.line))[0];
  if (near === undefined) return found;
  const isBetween = isBetweenEqual(witnesses.get(file) ?? [], frame.line);
  const settle = ({ isOpen, ...place }: MatchedFrame): MatchedFrame => (isOpen === true && !isBetween ? { ...place, isOpen } : place);
  if (near.shift === 0) return found.map(settle);
  return matchStack(source, { ...frame, line: frame.line + near.shift }).map((place) => ({ ...settle(place), movedFrom: frame.line }));
}

/** Lines before and behind stand equally far off, so nothing came or went between them. */
function isBetweenEqual(witnesses: readonly Witness[], line: number): boolean {
  const before = witnesses.filter((witness) => witness.line <= line).toSorted((a, b) => b.line - a.line)[0];
  const behind = witnesses.filter((witness) => witness.line >= line).toSorted((a, b) => a.line - b.line)[0];
  return before !== undefined && before.shift === behind?.shift;
}

/**
 * Places of a finding, by the frames of the profile: the line of the repository where the call is proven to stand; several where
 * they fit equally, after what the profile says; else what the profile says alone.
 */
export function locate(
  source: SourceTree,
  frames: readonly Frame[],
  witnesses: ReadonlyMap<string, readonly Witness[]> = new Map(),
): Location[] {
  const locations: Location[] = [];
  const add = (location: Location): void => {
    if (!locations.some((other) => other.file === location.file && other.line === location.line)) locations.push(location);
  };
  for (const frame of frames) {
    const places = settled(source, frame, witnesses);
    const told = frame.isInstalled === true ? null : toldLocation(frame);
    const [only] = places;
    if (places.length === 1 && only !== undefined) {
      const { isOpen, ...place } = only;
      // A line that only may make the call is where the profile says, as long as the code is the same.
      add({ ...place, provenBy: isOpen === true ? 'syntax' : 'call-stack' });
      continue;
    }
    if (told !== null) add(told);
    for (const { isOpen: _, ...place } of places) add({ ...place, provenBy: 'syntax', oneOf: places.length });
  }
  return locations;
}
