declare module "mcp_tools" {
  type Row = Record<string, any>;
  type Named = string | object;

  /** The error of a failed tool call, search or other request. */
  export class ToolError extends Error {
    constructor(message: string, details?: { code?: string; server?: string; tool?: string; retryable?: boolean });
    /** The kind of failure, such as "denied", "invalid_arguments", "unknown_tool", "rate_limited", "timeout" or "tool_failed". */
    code: string;
    server?: string;
    tool?: string;
    retryable: boolean;
  }
  /** Binary content of a tool result: an image, audio or a file. */
  export interface Blob {
    data: Uint8Array;
    mimeType?: string;
    uri?: string;
    type?: string;
  }
  export interface CallOptions {
    /** The time limit in seconds, in place of the server's configured timeout. */
    timeout?: number;
  }
  export interface SearchOptions {
    query?: string;
    search?: string | string[];
    limit?: number;
    server?: string;
    detail?: "names" | "signatures" | "full";
  }

  /** Returns the MCP servers that this code may use, with their state and number of tools. */
  export function listServers(): Promise<Row[]>;
  /** Returns permitted tools that match the query, best first, each with its signature. */
  export function searchTools(query?: string | SearchOptions, options?: number | SearchOptions): Promise<Row[]>;
  /** Like `searchTools`, with tool names for `callMCPTool`: `discoverMCPTools({ search: ["issues"] })`. */
  export function discoverMCPTools(query?: string | SearchOptions, options?: number | SearchOptions): Promise<Row[]>;
  /** Returns the full definition of a tool: `describe("github", "list_issues")` or `describe("github.list_issues")`. With a
   * server alone, its state and the instructions that it gives. */
  export function describe(server: string, tool?: string): Promise<Row>;
  /** Calls a tool by name: `callTool("github", "list_issues", {...})` or `callTool("github.list_issues", {...})`. */
  export function callTool(name: string, args?: Row, options?: CallOptions): Promise<any>;
  export function callTool(server: string, tool: string, args?: Row, options?: CallOptions): Promise<any>;
  /** Returns the name, description and JSON Schema of a tool: `getToolSchema("mcp__github__list_issues")`. */
  export function getToolSchema(name: string): Promise<Row>;
  /** Returns a truncated result in full: the value, or the printed text. */
  export function loadResult(handle: string): Promise<any>;
  /** Returns everything that a server sent with a result, or with a ToolError: `content`, `structuredContent`, `_meta`. */
  export function fullResult(value: unknown): Row;
  /** Returns the permitted resources of a server. */
  export function listResources(server: Named): Promise<Row[]>;
  /** Reads a resource by its URI: a string for text, an object with `data` for bytes; an array for several. */
  export function readResource(server: Named, uri: string): Promise<any>;
  /** Returns the permitted prompts of a server. */
  export function listPrompts(server: Named): Promise<Row[]>;
  /** Returns a prompt: an object with `messages`, each with `role` and `content`. */
  export function getPrompt(server: Named, name: string, args?: Record<string, string>): Promise<Row>;

  export {
    callTool as call_tool,
    callTool as callMCPTool,
    callTool as call_mcp_tool,
    fullResult as full_result,
    getToolSchema as get_tool_schema,
    getPrompt as get_prompt,
    listPrompts as list_prompts,
    listResources as list_resources,
    listServers as list_servers,
    loadResult as load_result,
    readResource as read_resource,
    discoverMCPTools as discover_mcp_tools,
    searchTools as search_tools,
  };
}

declare const mcp_tools: typeof import("mcp_tools");
declare const mcp: typeof import("mcp_tools");
declare const ToolError: typeof import("mcp_tools").ToolError;
declare const callTool: typeof import("mcp_tools").callTool;
declare const call_tool: typeof import("mcp_tools").callTool;
declare const callMCPTool: typeof import("mcp_tools").callTool;
declare const call_mcp_tool: typeof import("mcp_tools").callTool;
declare const describe: typeof import("mcp_tools").describe;
declare const fullResult: typeof import("mcp_tools").fullResult;
declare const full_result: typeof import("mcp_tools").fullResult;
declare const getToolSchema: typeof import("mcp_tools").getToolSchema;
declare const get_tool_schema: typeof import("mcp_tools").getToolSchema;
declare const searchTools: typeof import("mcp_tools").searchTools;
declare const search_tools: typeof import("mcp_tools").searchTools;
declare const discoverMCPTools: typeof import("mcp_tools").discoverMCPTools;
declare const discover_mcp_tools: typeof import("mcp_tools").discoverMCPTools;
declare const listServers: typeof import("mcp_tools").listServers;
declare const list_servers: typeof import("mcp_tools").listServers;
declare const listResources: typeof import("mcp_tools").listResources;
declare const list_resources: typeof import("mcp_tools").listResources;
declare const loadResult: typeof import("mcp_tools").loadResult;
declare const load_result: typeof import("mcp_tools").loadResult;
declare const readResource: typeof import("mcp_tools").readResource;
declare const read_resource: typeof import("mcp_tools").readResource;
declare const listPrompts: typeof import("mcp_tools").listPrompts;
declare const list_prompts: typeof import("mcp_tools").listPrompts;
declare const getPrompt: typeof import("mcp_tools").getPrompt;
declare const get_prompt: typeof import("mcp_tools").getPrompt;

interface String {
  /** Parses the text as JSON. */
  json(): any;
}
