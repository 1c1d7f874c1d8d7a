// The web platform of sessions, where neither `lib` has "dom" nor there is a package @types/node.

interface Timer {
  ref(): this;
  unref(): this;
  hasRef(): boolean;
  refresh(): this;
  [Symbol.toPrimitive](): number;
}
declare function setTimeout<A extends any[]>(callback: (...args: A) => void, ms?: number, ...args: A): Timer;
declare function setInterval<A extends any[]>(callback: (...args: A) => void, ms?: number, ...args: A): Timer;
declare function clearTimeout(timer?: Timer | number | null): void;
declare function clearInterval(timer?: Timer | number | null): void;
declare function queueMicrotask(callback: () => void): void;
declare function structuredClone<T>(value: T, options?: { transfer?: any[] }): T;
declare function atob(text: string): string;
declare function btoa(text: string): string;

declare class DOMException extends Error {
  constructor(message?: string, name?: string | { name?: string; cause?: unknown });
  readonly code: number;
}

declare class TextEncoder {
  readonly encoding: "utf-8";
  encode(text?: string): Uint8Array<ArrayBuffer>;
  encodeInto(text: string, bytes: Uint8Array): { read: number; written: number };
}
declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(bytes?: ArrayBufferLike | ArrayBufferView, options?: { stream?: boolean }): string;
}

declare class Event {
  constructor(type: string, init?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean });
  readonly type: string;
  readonly target: EventTarget | null;
  readonly currentTarget: EventTarget | null;
  readonly cancelable: boolean;
  readonly defaultPrevented: boolean;
  readonly timeStamp: number;
  preventDefault(): void;
  stopPropagation(): void;
  stopImmediatePropagation(): void;
}
declare class CustomEvent<T = any> extends Event {
  constructor(type: string, init?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean; detail?: T });
  readonly detail: T;
}
type EventListener = ((event: any) => void) | { handleEvent(event: any): void };
declare class EventTarget {
  addEventListener(
    type: string,
    listener: EventListener | null,
    options?: boolean | { capture?: boolean; once?: boolean; passive?: boolean; signal?: AbortSignal },
  ): void;
  removeEventListener(type: string, listener: EventListener | null, options?: boolean | { capture?: boolean }): void;
  dispatchEvent(event: Event): boolean;
}
declare class AbortSignal extends EventTarget {
  static abort(reason?: any): AbortSignal;
  static timeout(ms: number): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  readonly aborted: boolean;
  readonly reason: any;
  onabort: ((event: Event) => void) | null;
  throwIfAborted(): void;
}
declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: any): void;
}

declare class ReadableStream<R = any> {
  constructor(source?: object, strategy?: object);
  static from<R>(source: Iterable<R> | AsyncIterable<R>): ReadableStream<R>;
  readonly locked: boolean;
  cancel(reason?: any): Promise<void>;
  getReader(): ReadableStreamDefaultReader<R>;
  pipeThrough<T>(transform: { readable: ReadableStream<T>; writable: WritableStream<R> }, options?: object): ReadableStream<T>;
  pipeTo(target: WritableStream<R>, options?: object): Promise<void>;
  tee(): [ReadableStream<R>, ReadableStream<R>];
  values(options?: { preventCancel?: boolean }): AsyncIterableIterator<R>;
  [Symbol.asyncIterator](): AsyncIterableIterator<R>;
}
declare class ReadableStreamDefaultReader<R = any> {
  constructor(stream: ReadableStream<R>);
  readonly closed: Promise<void>;
  read(): Promise<{ done: false; value: R } | { done: true; value: undefined }>;
  cancel(reason?: any): Promise<void>;
  releaseLock(): void;
}
declare class WritableStream<W = any> {
  constructor(sink?: object, strategy?: object);
  readonly locked: boolean;
  abort(reason?: any): Promise<void>;
  close(): Promise<void>;
  getWriter(): WritableStreamDefaultWriter<W>;
}
declare class WritableStreamDefaultWriter<W = any> {
  constructor(stream: WritableStream<W>);
  readonly closed: Promise<void>;
  readonly ready: Promise<void>;
  readonly desiredSize: number | null;
  write(chunk?: W): Promise<void>;
  close(): Promise<void>;
  abort(reason?: any): Promise<void>;
  releaseLock(): void;
}
declare class TransformStream<I = any, O = any> {
  constructor(transformer?: object, writableStrategy?: object, readableStrategy?: object);
  readonly readable: ReadableStream<O>;
  readonly writable: WritableStream<I>;
}
declare class TextEncoderStream extends TransformStream<string, Uint8Array> {}
declare class TextDecoderStream extends TransformStream<Uint8Array, string> {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
}
declare class CompressionStream extends TransformStream<Uint8Array, Uint8Array> {
  constructor(format: "gzip" | "deflate" | "deflate-raw");
}
declare class DecompressionStream extends TransformStream<Uint8Array, Uint8Array> {
  constructor(format: "gzip" | "deflate" | "deflate-raw");
}

type BlobPart = string | ArrayBufferLike | ArrayBufferView | Blob;
declare class Blob {
  constructor(parts?: Iterable<BlobPart>, options?: { type?: string; endings?: "transparent" | "native" });
  readonly size: number;
  readonly type: string;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
  slice(start?: number, end?: number, type?: string): Blob;
  stream(): ReadableStream<Uint8Array>;
  text(): Promise<string>;
}
declare class File extends Blob {
  constructor(parts: Iterable<BlobPart>, name: string, options?: { type?: string; lastModified?: number });
  readonly name: string;
  readonly lastModified: number;
}
declare class FormData {
  append(name: string, value: string | Blob, fileName?: string): void;
  delete(name: string): void;
  get(name: string): string | File | null;
  getAll(name: string): (string | File)[];
  has(name: string): boolean;
  set(name: string, value: string | Blob, fileName?: string): void;
  forEach(callback: (value: string | File, key: string, parent: FormData) => void): void;
  entries(): IterableIterator<[string, string | File]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string | File>;
  [Symbol.iterator](): IterableIterator<[string, string | File]>;
}
type HeadersInit = Headers | Record<string, string> | Iterable<readonly [string, string]>;
declare class Headers {
  constructor(init?: HeadersInit);
  append(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  getSetCookie(): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  forEach(callback: (value: string, key: string, parent: Headers) => void): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}
type BodyInit = string | ArrayBufferLike | ArrayBufferView | Blob | FormData | URLSearchParams | ReadableStream;
interface RequestInit {
  method?: string;
  headers?: HeadersInit;
  body?: BodyInit | null;
  redirect?: "follow" | "error" | "manual";
  signal?: AbortSignal | null;
  duplex?: "half";
  [option: string]: any;
}
declare class Body {
  readonly body: ReadableStream<Uint8Array> | null;
  readonly bodyUsed: boolean;
  arrayBuffer(): Promise<ArrayBuffer>;
  blob(): Promise<Blob>;
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
  formData(): Promise<FormData>;
  json(): Promise<any>;
  text(): Promise<string>;
}
declare class Request extends Body {
  constructor(input: string | URL | Request, init?: RequestInit);
  readonly headers: Headers;
  readonly method: string;
  readonly redirect: string;
  readonly signal: AbortSignal;
  readonly url: string;
  clone(): Request;
}
declare class Response extends Body {
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
  clone(): Response;
}
declare function fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;

declare class MessagePort extends EventTarget {
  onmessage: ((event: any) => void) | null;
  postMessage(message: any, transfer?: any[] | object): void;
  start(): void;
  close(): void;
}
declare class MessageChannel {
  readonly port1: MessagePort;
  readonly port2: MessagePort;
}
declare class BroadcastChannel extends EventTarget {
  constructor(name: string);
  readonly name: string;
  onmessage: ((event: any) => void) | null;
  postMessage(message: any): void;
  close(): void;
}

declare var crypto: {
  getRandomValues<T extends ArrayBufferView>(array: T): T;
  randomUUID(): `${string}-${string}-${string}-${string}-${string}`;
  readonly subtle: any;
};
declare var performance: {
  readonly timeOrigin: number;
  now(): number;
  mark(name: string, options?: object): any;
  measure(name: string, from?: any, to?: string): any;
  getEntries(): any[];
  getEntriesByName(name: string, type?: string): any[];
  getEntriesByType(type: string): any[];
  clearMarks(name?: string): void;
  clearMeasures(name?: string): void;
};
