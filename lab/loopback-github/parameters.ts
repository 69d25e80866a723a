/** Reads path and query parameters as described. */
import type { Description, Operation, Parameter, Schema } from './description.ts';
import type { JsonObject } from './json.ts';
import { perPageFault } from './rules.ts';

/** Typed parameters and what is wrong with them. */
export interface ReadParameters {
  values: JsonObject;
  /** A path parameter that cannot be what it should be: the thing does not exist. */
  pathFaults: string[];
  queryFaults: string[];
  /** Query parameters GitHub would ignore. */
  unknown: string[];
}

/** Types and checks the parameters of a request. */
export function readParameters(
  description: Description,
  operation: Operation,
  path: { [name: string]: string },
  query: URLSearchParams,
): ReadParameters {
  const result: ReadParameters = { values: {}, pathFaults: [], queryFaults: [], unknown: [] };
  for (const [index, parameter] of operation.parameters.entries()) {
    if (parameter.in !== 'path' && parameter.in !== 'query') continue;
    const given = parameter.in === 'path' ? path[parameter.name] : query.get(parameter.name);
    const faults = parameter.in === 'path' ? result.pathFaults : result.queryFaults;
    if (given === undefined || given === null) {
      if (parameter.schema.default !== undefined) result.values[parameter.name] = parameter.schema.default;
      if (parameter.required) faults.push(`${parameter.name} is missing`);
      continue;
    }
    const value = typed(parameter.schema, given);
    result.values[parameter.name] = value;
    const pointer = ['rest', 'operations', operation.id, 'parameters', String(index), 'schema'];
    faults.push(...description.faults(pointer, value).map((fault) => `${parameter.name} ${fault.replace(/^\/ /, '')}`));
  }
  const fault = perPageFault(result.values.per_page);
  if (fault) result.unknown.push(fault);
  const described = (name: string): boolean =>
    operation.parameters.some((parameter: Parameter) => parameter.in === 'query' && parameter.name === name);
  for (const name of new Set(query.keys())) if (!described(name)) result.unknown.push(`${name} is not a query parameter`);
  return result;
}

function typed(schema: Schema, given: string): unknown {
  const types = [
    schema.type,
    ...[schema.oneOf, schema.anyOf].flatMap((parts) => (Array.isArray(parts) ? parts.map((part: Schema) => part.type) : [])),
  ].flat();
  if (types.includes('integer') && /^-?\d+$/.test(given)) return Number(given);
  if (types.includes('boolean') && /^(true|false)$/.test(given)) return given === 'true';
  if (types.includes('array')) return given.split(',');
  return given;
}
