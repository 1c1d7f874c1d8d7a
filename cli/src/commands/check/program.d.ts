// Global in programs, besides ECMAScript.

/** Arguments of `program start … -- ARGS`. */
declare const args: string[];
/** Variables of `program start --env`. */
declare const env: Record<string, string>;

declare const fs: {
  /** The text, or null if it does not exist or may not be read. */
  readFile(path: string): string | null;
  /** Whether it was written. */
  writeFile(path: string, text: string): boolean;
  /** Sorted absolute paths. */
  listFiles(path?: string, options?: { recursive?: boolean; filter?: string }): string[];
};

declare const crypto: { randomUUID(): string };
declare function atob(text: string): string;
declare function btoa(text: string): string;
declare function structuredClone<T>(value: T, options?: { transfer?: any[] }): T;

declare class DOMException extends Error {
  constructor(message?: string, name?: string | { name?: string; cause?: unknown });
  readonly code: number;
}
