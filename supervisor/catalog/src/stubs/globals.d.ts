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
  readonly subtle: {
    digest(algorithm: string | { name: string }, data: ArrayBuffer | ArrayBufferView): Promise<ArrayBuffer>;
  };
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
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  toString(): string;
  forEach(callback: (value: string, name: string) => void): void;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  entries(): IterableIterator<[string, string]>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
  readonly size: number;
}
declare class URL {
  constructor(url: string | URL, base?: string | URL);
  static canParse(url: string | URL, base?: string | URL): boolean;
  static parse(url: string | URL, base?: string | URL): URL | null;
  href: string;
  readonly origin: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  readonly searchParams: URLSearchParams;
  hash: string;
  toString(): string;
  toJSON(): string;
}
/** Bytes, as in Node.js. */
interface Buffer extends Uint8Array {
  toString(encoding?: string, start?: number, end?: number): string;
  equals(other: Uint8Array): boolean;
  compare(other: Uint8Array): number;
  write(text: string, offset?: number, length?: number, encoding?: string): number;
  copy(target: Uint8Array, targetStart?: number, start?: number, end?: number): number;
  slice(start?: number, end?: number): any;
  subarray(start?: number, end?: number): Buffer;
  /** `readUInt16LE`, `writeDoubleBE` and the like. */
  [method: `read${string}`]: (offset?: number) => any;
  [method: `write${string}`]: (...values: any[]) => number;
}
declare const Buffer: {
  readonly prototype: Buffer;
  from(value: string | ArrayLike<number> | ArrayBuffer | Iterable<number>, encoding?: string): Buffer;
  from(value: ArrayBuffer, offset?: number, length?: number): Buffer;
  alloc(size: number, fill?: string | number | Uint8Array, encoding?: string): Buffer;
  allocUnsafe(size: number): Buffer;
  concat(list: readonly Uint8Array[], total?: number): Buffer;
  byteLength(value: string | ArrayBuffer | ArrayBufferView, encoding?: string): number;
  compare(left: Uint8Array, right: Uint8Array): number;
  isBuffer(value: unknown): value is Buffer;
  isEncoding(encoding: string): boolean;
};
/** Returns the text of a tool result as the server sent it, also if it was JSON text and has been decoded. */
declare function rawText(value: unknown): string;
declare function raw_text(value: unknown): string;
declare function require(name: "mcp_tools"): typeof import("mcp_tools");
declare function require(name: string): any;
/** Files in memory: see docs/files.md. */
declare const files: {
  read(path: string): Uint8Array;
  readText(path: string): string;
  write(path: string, data: string | ArrayBuffer | ArrayBufferView): void;
  append(path: string, data: string | ArrayBuffer | ArrayBufferView): void;
  list(path?: string): string[];
  remove(path: string): void;
  exists(path: string): boolean;
};
declare module "node:fs" {
  type Data = string | ArrayBuffer | ArrayBufferView;
  type Encoding = "utf8" | "utf-8" | "base64" | "hex" | "latin1";
  type Writing = Encoding | { encoding?: Encoding; flag?: string };
  interface Bytes extends Uint8Array {
    toString(encoding?: Encoding): string;
  }
  interface Stats {
    size: number;
    mtimeMs: number;
    mtime: Date;
    isFile(): boolean;
    isDirectory(): boolean;
    isSymbolicLink(): boolean;
  }
  interface Dirent {
    name: string;
    parentPath: string;
    isFile(): boolean;
    isDirectory(): boolean;
    isSymbolicLink(): boolean;
  }
  export function readFileSync(path: string, options: Encoding | { encoding: Encoding }): string;
  export function readFileSync(path: string, options?: null | { encoding?: null }): Bytes;
  export function writeFileSync(path: string, data: Data, options?: Writing): void;
  export function appendFileSync(path: string, data: Data, options?: Writing): void;
  export function readdirSync(path: string, options: { withFileTypes: true; recursive?: boolean }): Dirent[];
  export function readdirSync(path: string, options?: { recursive?: boolean }): string[];
  export function mkdirSync(path: string, options?: { recursive?: boolean }): string | undefined;
  export function mkdtempSync(prefix: string): string;
  export function rmSync(path: string, options?: { recursive?: boolean; force?: boolean }): void;
  export function rmdirSync(path: string): void;
  export function unlinkSync(path: string): void;
  export function renameSync(from: string, to: string): void;
  export function copyFileSync(from: string, to: string, mode?: number): void;
  export function cpSync(from: string, to: string, options?: { recursive?: boolean }): void;
  export function statSync(path: string, options?: { throwIfNoEntry?: boolean }): Stats;
  export function lstatSync(path: string, options?: { throwIfNoEntry?: boolean }): Stats;
  export function accessSync(path: string, mode?: number): void;
  export function existsSync(path: string): boolean;
  export function truncateSync(path: string, length?: number): void;
  export function realpathSync(path: string): string;
  export const constants: { F_OK: 0; R_OK: 4; W_OK: 2; X_OK: 1; COPYFILE_EXCL: 1 };
  export const promises: typeof import("node:fs/promises");
}
declare module "node:fs/promises" {
  import type { Bytes, Data, Dirent, Encoding, Stats, Writing } from "node:fs";
  export function readFile(path: string, options: Encoding | { encoding: Encoding }): Promise<string>;
  export function readFile(path: string, options?: null | { encoding?: null }): Promise<Bytes>;
  export function writeFile(path: string, data: Data, options?: Writing): Promise<void>;
  export function appendFile(path: string, data: Data, options?: Writing): Promise<void>;
  export function readdir(path: string, options: { withFileTypes: true; recursive?: boolean }): Promise<Dirent[]>;
  export function readdir(path: string, options?: { recursive?: boolean }): Promise<string[]>;
  export function mkdir(path: string, options?: { recursive?: boolean }): Promise<string | undefined>;
  export function mkdtemp(prefix: string): Promise<string>;
  export function rm(path: string, options?: { recursive?: boolean; force?: boolean }): Promise<void>;
  export function rmdir(path: string): Promise<void>;
  export function unlink(path: string): Promise<void>;
  export function rename(from: string, to: string): Promise<void>;
  export function copyFile(from: string, to: string, mode?: number): Promise<void>;
  export function cp(from: string, to: string, options?: { recursive?: boolean }): Promise<void>;
  export function stat(path: string): Promise<Stats>;
  export function lstat(path: string): Promise<Stats>;
  export function access(path: string, mode?: number): Promise<void>;
  export function truncate(path: string, length?: number): Promise<void>;
  export function realpath(path: string): Promise<string>;
}
declare module "node:path" {
  interface Parsed {
    root: string;
    dir: string;
    base: string;
    ext: string;
    name: string;
  }
  export function join(...paths: string[]): string;
  export function resolve(...paths: string[]): string;
  export function normalize(path: string): string;
  export function relative(from: string, to: string): string;
  export function dirname(path: string): string;
  export function basename(path: string, suffix?: string): string;
  export function extname(path: string): string;
  export function isAbsolute(path: string): boolean;
  export function parse(path: string): Parsed;
  export function format(path: Partial<Parsed>): string;
  export const sep: "/";
  export const delimiter: ":";
}
declare module "fs" {
  export * from "node:fs";
}
declare module "fs/promises" {
  export * from "node:fs/promises";
}
declare module "path" {
  export * from "node:path";
}
declare module "node:crypto" {
  interface Hash {
    update(data: string | ArrayBuffer | ArrayBufferView, encoding?: string): Hash;
    copy(): Hash;
    digest(): Buffer;
    digest(encoding: string): string;
  }
  export function createHash(algorithm: string): Hash;
  export function createHmac(algorithm: string, key: string | ArrayBuffer | ArrayBufferView): Hash;
  export function hash(algorithm: string, data: string | ArrayBuffer | ArrayBufferView, encoding?: string): string;
  export function getHashes(): string[];
  export function getRandomValues<T extends ArrayBufferView>(array: T): T;
  export function randomBytes(size: number): Buffer;
  export function randomInt(max: number): number;
  export function randomInt(min: number, max: number): number;
  export function randomUUID(): string;
  export function timingSafeEqual(left: ArrayBuffer | ArrayBufferView, right: ArrayBuffer | ArrayBufferView): boolean;
  export const subtle: typeof crypto.subtle;
  export const webcrypto: typeof crypto;
}
declare module "node:buffer" {
  const same: typeof Buffer;
  export { same as Buffer };
}
declare module "node:url" {
  const sameUrl: typeof URL;
  const sameParameters: typeof URLSearchParams;
  export { sameUrl as URL, sameParameters as URLSearchParams };
  export function fileURLToPath(url: string | URL): string;
  export function pathToFileURL(path: string): URL;
}
declare module "node:util" {
  export function format(...values: unknown[]): string;
  export function inspect(value: unknown): string;
  export function promisify(call: (...values: any[]) => void): (...values: any[]) => Promise<any>;
  const sameEncoder: typeof TextEncoder;
  const sameDecoder: typeof TextDecoder;
  export { sameEncoder as TextEncoder, sameDecoder as TextDecoder };
}
declare module "crypto" {
  export * from "node:crypto";
}
declare module "buffer" {
  export * from "node:buffer";
}
declare module "url" {
  export * from "node:url";
}
declare module "util" {
  export * from "node:util";
}
