// What programs find besides the language itself and `mcp_tools`.

declare const console: {
  log(...values: unknown[]): void;
  info(...values: unknown[]): void;
  debug(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
  table(value: unknown, columns?: string[]): void;
  [name: string]: (...values: any[]) => void;
};
/** All servers and functions, as in similar products: `tools.github.list_issues(…)`, `tools.search("words")`. */
declare const tools: any;
declare const codemode: any;
/** Every permitted tool. */
declare const ALL_TOOLS: { server: string; name: string; description: string }[];
declare function setTimeout(callback: (...values: any[]) => void, ms?: number, ...values: any[]): number;
declare function setInterval(callback: (...values: any[]) => void, ms?: number, ...values: any[]): number;
declare function setImmediate(callback: (...values: any[]) => void, ...values: any[]): number;
declare function clearTimeout(id?: number): void;
declare function clearInterval(id?: number): void;
declare function clearImmediate(id?: number): void;
declare function queueMicrotask(callback: () => void): void;
declare const performance: { now(): number; readonly timeOrigin: number };
declare const crypto: {
  randomUUID(): string;
  getRandomValues<T extends ArrayBufferView>(array: T): T;
};
declare class TextEncoder {
  readonly encoding: string;
  encode(text?: string): Uint8Array;
}
declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: string;
  decode(bytes?: ArrayBuffer | ArrayBufferView): string;
}
declare function btoa(text: string): string;
declare function atob(text: string): string;
declare function structuredClone<T>(value: T): T;
declare class URLSearchParams {
  constructor(init?: string | Record<string, string> | Iterable<[string, string]>);
  append(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  toString(): string;
  forEach(callback: (value: string, name: string) => void): void;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  entries(): IterableIterator<[string, string]>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}
/** Returns the text of a tool result as the server sent it, also if it was JSON text and has been decoded. */
declare function rawText(value: unknown): string;
declare function raw_text(value: unknown): string;
declare function require(name: "mcp_tools"): typeof import("mcp_tools");
declare function require(name: string): any;
