/**
 * GitHub's own description of its REST API and webhooks, trimmed to what is served here (see `trim-description.ts`), with one lazily
 * compiled validator per schema. Read once per process and shared by every loopback GitHub in it.
 */
import { readFileSync } from 'node:fs';
import { Ajv, type ValidateFunction } from 'ajv';
import ajvFormats from 'ajv-formats';
import { isObject } from './json.ts';
import { undeclaredProperties } from './undeclared-properties.ts';

/** A JSON Schema as the trimmed description holds it. */
export type Schema = { [keyword: string]: unknown };

/** A path, query or header parameter of an operation. */
export interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  /** The value may contain slashes. */
  multiSegment?: boolean;
  schema: Schema;
}

/** One operation of the REST API. */
export interface Operation {
  id: string;
  method: string;
  path: string;
  parameters: Parameter[];
  body?: { required: boolean; schema: Schema };
  /** Schemas by status code and media type; an empty object is a response without described content. */
  responses: { [status: string]: { [mediaType: string]: Schema } };
}

interface DescriptionFile {
  about: { [part: string]: { package: string; version: string; file: string; sha256: string } };
  rest: { operations: { [id: string]: Omit<Operation, 'id'> }; components: { [name: string]: Schema } };
  webhooks: { events: { [name: string]: Schema }; components: { [name: string]: Schema } };
}

interface Route {
  operation: Operation;
  pattern: RegExp;
  names: string[];
  literals: number;
}

/** The description, ready to route requests and to judge values. */
export interface Description {
  about: DescriptionFile['about'];
  operations: ReadonlyMap<string, Operation>;
  webhooks: ReadonlySet<string>;
  /** The operation a request addresses, with its decoded path parameters. */
  route(method: string, path: string): { operation: Operation; parameters: { [name: string]: string } } | null;
  /** What is wrong with a value according to the schema at a pointer of the description; empty when nothing is. */
  faults(pointer: string[], value: unknown): string[];
}

const FILE = new URL('./github-api.json', import.meta.url);
/** Formats of the description that say nothing a validator could check. */
const FREE_FORMATS = ['int32', 'int64', 'repo.nwo', 'ssh-key', 'permalink', 'timestamp', 'double', 'float'];

let loaded: Description | null = null;

/** The description, loaded on first use. */
export function description(): Description {
  loaded ??= load();
  return loaded;
}

function load(): Description {
  const file = JSON.parse(readFileSync(FILE, 'utf8')) as DescriptionFile;
  const operations = new Map<string, Operation>();
  for (const [id, operation] of Object.entries(file.rest.operations)) operations.set(id, { id, ...operation });
  const routes = [...operations.values()].map(compileRoute).sort((a, b) => b.literals - a.literals);

  let ajv: Ajv | null = null;
  const compiled = new Map<string, ValidateFunction>();
  const compile = (reference: string): ValidateFunction => {
    if (!ajv) {
      ajv = new Ajv({ strict: false, allErrors: true, validateSchema: false, inlineRefs: false });
      ajvFormats.default(ajv);
      for (const format of FREE_FORMATS) ajv.addFormat(format, true);
      ajv.addSchema({ $id: 'github', ...file });
    }
    return ajv.compile({ $ref: reference });
  };

  return {
    about: file.about,
    operations,
    webhooks: new Set(Object.keys(file.webhooks.events)),
    route(method, path) {
      for (const route of routes) {
        if (route.operation.method !== method) continue;
        const match = route.pattern.exec(path);
        if (!match) continue;
        const parameters: { [name: string]: string } = {};
        for (const [index, name] of route.names.entries()) parameters[name] = decode(match[index + 1] ?? '');
        return { operation: route.operation, parameters };
      }
      return null;
    },
    faults(pointer, value) {
      const reference = `github#/${pointer.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`;
      let validate = compiled.get(reference);
      if (!validate) {
        validate = compile(reference);
        compiled.set(reference, validate);
      }
      const faults = validate(value)
        ? []
        : (validate.errors ?? []).map((error) => `${error.instancePath || '/'} ${error.message ?? error.keyword}`);
      const schema = pointer.reduce<unknown>(
        (node, part) => (typeof node === 'object' && node !== null ? (node as JsonRecord)[part] : undefined),
        file,
      );
      if (isObject(schema)) faults.push(...undeclaredProperties(file, schema, value).map((path) => `${path} is not described`));
      return faults;
    },
  };
}

type JsonRecord = { [key: string]: unknown };

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function compileRoute(operation: Operation): Route {
  const names: string[] = [];
  const pattern = operation.path.replace(/\{(\w+)\}|[^{]+/g, (text, name: string | undefined) => {
    if (!name) return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    names.push(name);
    const many = operation.parameters.some((parameter) => parameter.name === name && parameter.multiSegment);
    return many ? '(.*)' : '([^/]+)';
  });
  // The root directory is asked for as ".../contents" or ".../contents/".
  const optional = pattern.endsWith('/(.*)') ? `${pattern.slice(0, -5)}(?:/(.*))?` : pattern;
  const literals = operation.path.split('/').filter((part) => part !== '' && !part.startsWith('{')).length;
  return { operation, pattern: new RegExp(`^${optional}$`), names, literals };
}
