/** A named rule GitHub enforces beyond its description. */
export interface RuleBreach {
  name: string;
  /** `client`: its own request shows the mistake. `circumstance`: a correct client can meet it too (a race, a missing right). */
  blame: 'client' | 'circumstance';
}

/** An answer of the API that is an error, thrown by handlers and rules. */
export class ApiError extends Error {
  readonly status: number;
  readonly errors: unknown[] | undefined;
  readonly headers: { [name: string]: string };
  readonly rule: RuleBreach | undefined;

  constructor(
    status: number,
    message: string,
    details: { errors?: unknown[]; headers?: { [name: string]: string }; rule?: RuleBreach } = {},
  ) {
    super(message);
    this.status = status;
    this.errors = details.errors;
    this.headers = details.headers ?? {};
    this.rule = details.rule;
  }
}

/** A thing that is not there, or not visible to the caller. */
export function notFound(): ApiError {
  return new ApiError(404, 'Not Found');
}
