// Global in programs, besides ECMAScript.

/** Arguments of `program start … -- ARGS`. */
declare const args: string[];
/** Variables of `program start --env`. */
declare const env: Record<string, string>;

/** A task for which the program does not stop: as `CC`, with a promise of the answer. */
declare namespace CC {
  function async(prompt: string | number | boolean): Promise<string>;
  function async<T = any>(prompt: string | number | boolean, options: CCOptions<T>): Promise<T>;
}
/** Settled after so many milliseconds. */
declare function sleep(ms: number): Promise<void>;
/** The next event of this name; `default`, or a CCTimeoutError, when the time is over. */
declare function waitFor<T = any>(name: string, options?: { timeout_ms?: number; default?: T }): Promise<T>;

declare const fs: {
  /** The text, or null if it does not exist or may not be read. */
  readFile(path: string): string | null;
  /** Whether it was written. */
  writeFile(path: string, text: string): boolean;
  /** Sorted absolute paths. */
  listFiles(path?: string, options?: { recursive?: boolean; filter?: string }): string[];
};

type BodyInit = string | URLSearchParams | ArrayBuffer | ArrayBufferView;
type HeadersInit = Headers | Record<string, string> | Iterable<readonly [string, string]>;

declare class Headers {
  constructor(init?: HeadersInit);
  append(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  getSetCookie(): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  forEach(callback: (value: string, key: string, parent: Headers) => void, self?: any): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

interface RequestInit {
  method?: string;
  headers?: HeadersInit;
  /** At most 4 MiB. */
  body?: BodyInit | null;
  redirect?: 'follow' | 'error' | 'manual';
}

declare class Request {
  constructor(input: string | URL | Request, init?: RequestInit);
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly redirect: string;
  readonly bodyUsed: boolean;
  clone(): Request;
  text(): Promise<string>;
  json(): Promise<any>;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array>;
}

/** Its body is whole: at most 16 MiB. */
declare class Response {
  constructor(body?: BodyInit | null, init?: { status?: number; statusText?: string; headers?: HeadersInit });
  static error(): Response;
  static json(data: any, init?: { status?: number; statusText?: string; headers?: HeadersInit }): Response;
  static redirect(url: string | URL, status?: number): Response;
  readonly headers: Headers;
  readonly ok: boolean;
  readonly redirected: boolean;
  readonly status: number;
  readonly statusText: string;
  readonly type: string;
  readonly url: string;
  readonly bodyUsed: boolean;
  clone(): Response;
  text(): Promise<string>;
  json(): Promise<any>;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array>;
}

/** Needs rows of kind `net` in the template. The request is made at once, and the program waits for its response. */
declare function fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;

declare const crypto: { randomUUID(): string };
declare function atob(text: string): string;
declare function btoa(text: string): string;
declare function structuredClone<T>(value: T, options?: { transfer?: any[] }): T;

declare class DOMException extends Error {
  constructor(message?: string, name?: string | { name?: string; cause?: unknown });
  readonly code: number;
}
