// Global in sessions and in programs.

interface CCOptions<T = any> {
  /** JSON Schema that an answer must match; without one the answer is a string. */
  schema?: object | boolean;
  /** How many further answers may be refused before CC throws. */
  retries?: number;
  timeout_ms?: number;
  /** Returned when the time is over. */
  default?: T;
}
declare function CC(prompt: string | number | boolean): string;
declare function CC<T = any>(prompt: string | number | boolean, options: CCOptions<T>): T;
declare class CCError extends Error {}
declare class CCTimeoutError extends CCError {}
