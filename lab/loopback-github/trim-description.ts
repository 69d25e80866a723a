/**
 * Extracts from GitHub's OpenAPI descriptions the operations and webhook payloads the loopback GitHub serves, and writes them as
 * plain JSON Schema to `github-api.json`. The packages unpack to 385 MB and are therefore no dependency of this repository:
 *
 *     mkdir /tmp/description && cd /tmp/description && npm init -y
 *     npm i @octokit/openapi@23.0.2 @octokit/openapi-webhooks@12.1.0
 *     node lab/loopback-github/trim-description.ts /tmp/description
 */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describedOperations, describedWebhooks } from './described-operations.ts';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type Obj = { [key: string]: Json };

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
/** Keywords that say something about values; everything else (prose, examples, extensions) is dropped. */
const VALUE_KEYWORDS = [
  ...['type', 'enum', 'const', 'format', 'pattern', 'minLength', 'maxLength', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
  ...['multipleOf', 'minItems', 'maxItems', 'uniqueItems', 'minProperties', 'maxProperties', 'required', 'default'],
];

const isObject = (value: Json | undefined): value is Obj => typeof value === 'object' && value !== null && !Array.isArray(value);

function must(value: Json | undefined, what: string): Obj {
  if (!isObject(value)) throw new Error(`${what} is not an object in the description`);
  return value;
}

/** One description being trimmed: follows references and collects the components that are needed. */
function trimmer(description: Obj, section: string) {
  const components: Obj = {};

  function resolve(pointer: string): Json {
    let node: Json = description;
    for (const part of pointer.replace(/^#\//, '').split('/')) {
      node = must(node, pointer)[part.replaceAll('~1', '/').replaceAll('~0', '~')] ?? null;
    }
    return node;
  }

  /** The object itself, or what its `$ref` names (parameters, responses and headers are inlined). */
  function inlined(value: Json | undefined, what: string): Obj {
    const object = must(value, what);
    return typeof object.$ref === 'string' ? inlined(resolve(object.$ref), object.$ref) : object;
  }

  function reference(pointer: string): Obj {
    const name = pointer.split('/').at(-1) ?? pointer;
    if (!(name in components)) {
      components[name] = null;
      components[name] = schema(resolve(pointer));
    }
    return { $ref: `#/${section}/components/${name}` };
  }

  function schema(value: Json | undefined): Json {
    if (typeof value === 'boolean') return value;
    const from = must(value, 'schema');
    if (typeof from.$ref === 'string') return reference(from.$ref);
    const to: Obj = {};
    for (const keyword of VALUE_KEYWORDS) if (from[keyword] !== undefined) to[keyword] = from[keyword];
    for (const keyword of ['properties', 'patternProperties']) {
      if (!isObject(from[keyword])) continue;
      const properties: Obj = {};
      for (const [name, property] of Object.entries(from[keyword])) properties[name] = schema(property);
      to[keyword] = properties;
    }
    for (const keyword of ['items', 'additionalProperties', 'not']) if (from[keyword] !== undefined) to[keyword] = schema(from[keyword]);
    for (const keyword of ['allOf', 'anyOf', 'oneOf']) if (Array.isArray(from[keyword])) to[keyword] = from[keyword].map(schema);
    return from.nullable === true ? nullable(to) : to;
  }

  return { components, inlined, schema };
}

/** OpenAPI 3.0 `nullable: true` as JSON Schema. */
function nullable(schema: Obj): Json {
  if (typeof schema.type !== 'string') return Object.keys(schema).length === 0 ? schema : { anyOf: [schema, { type: 'null' }] };
  schema.type = [schema.type, 'null'];
  if (Array.isArray(schema.enum) && !schema.enum.includes(null)) schema.enum.push(null);
  return schema;
}

function trimRest(description: Obj): Obj {
  const { components, inlined, schema } = trimmer(description, 'rest');
  const operations: Obj = {};
  for (const [path, item] of Object.entries(must(description.paths, 'paths'))) {
    for (const method of METHODS) {
      const operation = must(item, path)[method];
      if (!isObject(operation) || typeof operation.operationId !== 'string') continue;
      if (!describedOperations.includes(operation.operationId)) continue;
      const content = (holder: Obj): Obj => {
        const types: Obj = {};
        for (const [type, media] of Object.entries(isObject(holder.content) ? holder.content : {}))
          types[type] = schema(must(media, type).schema);
        return types;
      };
      const parameters = (Array.isArray(operation.parameters) ? operation.parameters : []).map((entry) => {
        const parameter = inlined(entry, path);
        return {
          name: parameter.name ?? '',
          in: parameter.in ?? '',
          ...(parameter.required === true ? { required: true } : {}),
          ...(parameter['x-multi-segment'] === true ? { multiSegment: true } : {}),
          schema: schema(parameter.schema),
        };
      });
      const responses: Obj = {};
      for (const [status, response] of Object.entries(must(operation.responses, path)))
        responses[status] = content(inlined(response, path));
      const body = operation.requestBody === undefined ? null : inlined(operation.requestBody, path);
      operations[operation.operationId] = {
        method: method.toUpperCase(),
        path,
        parameters,
        ...(body ? { body: { required: body.required === true, schema: content(body)['application/json'] ?? true } } : {}),
        responses,
      };
    }
  }
  const missing = describedOperations.filter((id) => !(id in operations));
  if (missing.length > 0) throw new Error(`not in the description: ${missing.join(', ')}`);
  return { operations, components };
}

function trimWebhooks(description: Obj): Obj {
  const { components, schema, inlined } = trimmer(description, 'webhooks');
  const events: Obj = {};
  const webhooks = must(description.webhooks, 'webhooks');
  for (const name of describedWebhooks) {
    const post = must(must(webhooks[name], name).post, name);
    events[name] = schema(must(must(inlined(post.requestBody, name).content, name)['application/json'], name).schema);
  }
  return { events, components };
}

function load(root: string, packageName: string): { about: Obj; description: Obj } {
  const folder = join(root, 'node_modules', packageName);
  const bytes = readFileSync(join(folder, 'generated', 'api.github.com.json'));
  const version: string = must(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')), packageName).version as string;
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return {
    about: { package: packageName, version, file: 'generated/api.github.com.json', sha256 },
    description: JSON.parse(bytes.toString('utf8')),
  };
}

const root = process.argv[2];
if (!root) throw new Error('usage: node lab/loopback-github/trim-description.ts FOLDER_WITH_NODE_MODULES');
const rest = load(root, '@octokit/openapi');
const webhooks = load(root, '@octokit/openapi-webhooks');
const trimmed = {
  about: { rest: rest.about, webhooks: webhooks.about },
  rest: trimRest(rest.description),
  webhooks: trimWebhooks(webhooks.description),
};
const text = `${JSON.stringify(trimmed)}\n`;
writeFileSync(new URL('./github-api.json', import.meta.url), text);
console.log(
  `github-api.json: ${Object.keys(trimmed.rest.operations as Obj).length} operations, ${Object.keys(trimmed.webhooks.events as Obj).length} webhook payloads, ${text.length} bytes`,
);
