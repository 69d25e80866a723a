import type { Edit, Finding, Location, Report } from '../model/report.ts';
import { annotationLevel, blamedFindings, plainLine } from './check.ts';
import { formatSaving } from './figures.ts';
import { costsTime, isAcknowledged, numberFindings, sentence, verdictSentence } from './standing.ts';
import { word } from './words.ts';

/**
 * The report as SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/), for code scanning. A result needs a line of the
 * repository; causes without one are notifications of the run, so that nothing is lost.
 */

const SCHEMA = 'https://json.schemastore.org/sarif-2.1.0.json';
/** GitHub shows this many results of a run; the reports of this tool hold a few dozen. */
const MAX_RESULTS = 1000;

type Level = 'error' | 'warning' | 'note';
const LEVELS = { failure: 'error', warning: 'warning', notice: 'note' } as const;

/** Text of a message. Brackets and braces would be read as links and placeholders. */
function messageText(text: string): string {
  return plainLine(text, 2000)
    .replace(/[\\[\]]/g, '\\$&')
    .replace(/\{(?=\d+\})/g, '{{')
    .replace(/(?<=\{\{\d+)\}/g, '}}');
}

function said(finding: Finding, report: Report): string {
  const { lang } = report;
  const change = finding.recommendations[0];
  const saving = costsTime(finding)
    ? word('check.annotation', lang, { title: finding.title, saving: formatSaving(finding.saving!.perStepMs, lang).headline })
    : finding.title;
  const parts = [saving, ...(change === undefined ? [] : [change.title, ...(change.text === change.title ? [] : [change.text])])];
  return messageText(parts.map((part) => sentence(part, lang)).join(lang === 'en' ? ' ' : ''));
}

/** A path of the repository as a relative URI. */
function uriOf(file: string): string {
  return file
    .toWellFormed()
    .split('/')
    .map((part) => encodeURIComponent(part))
    .join('/');
}

function place({ file, line, symbol }: Location): object {
  return {
    physicalLocation: { artifactLocation: { uri: uriOf(file), uriBaseId: '%SRCROOT%' }, region: { startLine: line } },
    ...(symbol === null ? {} : { logicalLocations: [{ name: plainLine(symbol, 200), kind: 'function' }] }),
  };
}

/** The lines an edit replaces; with the line break when nothing takes their place. */
function regionOf({ startLine, endLine, before, after }: Edit): object {
  if (after === '') return { startLine, startColumn: 1, endLine: endLine + 1, endColumn: 1 };
  const last =
    before
      .replace(/\r?\n$/, '')
      .split('\n')
      .at(-1) ?? '';
  return { startLine, startColumn: 1, endLine, endColumn: last.replace(/\r$/, '').length + 1 };
}

/** Edits as replacements of whole lines. */
function fixes(finding: Finding, report: Report): object[] {
  return finding.recommendations.flatMap((change) =>
    change.edits
      .filter(({ kind }) => kind === 'suggestion')
      .map((edit) => ({
        description: { text: messageText(sentence(change.title, report.lang)) },
        artifactChanges: [
          {
            artifactLocation: { uri: uriOf(edit.file), uriBaseId: '%SRCROOT%' },
            replacements: [
              {
                deletedRegion: regionOf(edit),
                insertedContent: { text: edit.after.replace(/\r?\n$/, '') },
              },
            ],
          },
        ],
      })),
  );
}

function properties(finding: Finding): object {
  const { severity, confidence, ranks, saving } = finding;
  return { severity, confidence, ranks, ...(saving === null ? {} : { savingMsPerStep: saving.perStepMs, basis: saving.basis }) };
}

function suppression({ acknowledged }: Finding): object[] {
  if (acknowledged === undefined) return [];
  return [{ kind: 'external', status: 'accepted', justification: messageText(acknowledged.reason) }];
}

/** The report as the text of a SARIF file. */
export function renderSarif(report: Report): string {
  const { lang } = report;
  const findings = numberFindings(report.findings).map(({ finding }) => finding);
  const blamed = blamedFindings(report);
  const checkable = (finding: Finding): Location | undefined =>
    finding.locations.find(({ provenBy, oneOf }) => provenBy !== 'profile' && oneOf === undefined);
  const levelOf = (finding: Finding, location: Location): Level =>
    isAcknowledged(finding) ? 'note' : LEVELS[annotationLevel(finding, location.provenBy, blamed)];
  const placed = findings.filter((f) => f.symptomOf === null && checkable(f) !== undefined).slice(0, MAX_RESULTS);
  const rules = [...new Set(findings.map(({ rule }) => rule))].sort();
  const results = placed.map((finding) => {
    const location = checkable(finding)!;
    const changes = fixes(finding, report);
    const muted = suppression(finding);
    return {
      ruleId: finding.rule,
      ruleIndex: rules.indexOf(finding.rule),
      level: levelOf(finding, location),
      message: { text: said(finding, report) },
      locations: [place(location)],
      ...(finding.locations.length > 1
        ? {
            relatedLocations: finding.locations
              .filter((l) => l !== location)
              .slice(0, 20)
              .map(place),
          }
        : {}),
      partialFingerprints: { 'npuAdvisorFinding/v1': finding.id },
      ...(changes.length === 0 ? {} : { fixes: changes }),
      ...(muted.length === 0 ? {} : { suppressions: muted }),
      properties: properties(finding),
    };
  });
  const notifications = findings
    .filter((f) => f.symptomOf === null && !placed.includes(f))
    .map((finding) => ({
      descriptor: { id: finding.rule },
      level: finding.severity === 'critical' || finding.severity === 'high' ? 'warning' : 'note',
      message: { text: said(finding, report) },
      properties: properties(finding),
    }));
  const sarif = {
    $schema: SCHEMA,
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'NPU Advisor',
            semanticVersion: report.tool.version,
            rules: rules.map((id) => ({ id, name: id, shortDescription: { text: id } })),
          },
        },
        columnKind: 'utf16CodeUnits',
        invocations: [{ executionSuccessful: report.verdict.outcome !== 'no-data', toolExecutionNotifications: notifications }],
        results,
        properties: { verdict: plainLine(verdictSentence(report), 1000), stepTimeMs: report.job.stepTimeMs, language: lang },
      },
    ],
  };
  return `${JSON.stringify(sarif, null, 2)}\n`;
}
