// The MCP servers as a tree of folders and files: `servers/github/create_issue.ts` has the signature and the description of a tool. Nothing is
// asked of the supervisor before a program looks at the folder of a server or reads the file of a tool.
(native, realm) => {
  const { ToolError, ask, findServer, findTool, servers, toolList } = realm;
  const { fileError, newFile } = realm.fileSystem;

  const INDEX = "index.ts";

  // Asks for something. A server that is not available is an error of the file system, as programs expect it of these functions.
  const answered = (path, request) => {
    try {
      return request();
    } catch (error) {
      if (error instanceof ToolError) throw fileError("EIO", path, "open", { words: error.message });
      throw error;
    }
  };
  const listing = (entries, find) => ({
    isDirectory: true,
    isListed: true,
    inode: 0,
    modifiedMs: 0,
    fixed: false,
    find,
    get entries() {
      return new Map(entries());
    },
  });
  const listedFile = (text) => {
    let bytes;
    const content = () => (bytes ??= native.toUtf8(realm.wellFormed(text())));
    return Object.defineProperties(Object.assign(newFile(), { isListed: true, changed: false, modifiedMs: 0 }), {
      bytes: { get: content },
      size: { get: () => content().length },
    });
  };

  const oneLine = (text) => text.replace(/\s+/g, " ").trim().replaceAll("*/", "* /");
  const textOfIndex = (server) => {
    const lines = toolsOf(server).map(({ name, identifier = name, summary }) => `export { ${identifier} } from "./${identifier}";${summary ? ` // ${oneLine(summary)}` : ""}`);
    return [`// The permitted tools of the MCP server ${server.name}.`, ...lines, ""].join("\n");
  };
  const textOfTool = (server, tool) => {
    const path = `servers/${server.name}/${tool.identifier ?? tool.name}.ts`;
    const described = answered(path, () => ask("describe", server.name, tool.name));
    const { identifier = tool.name, description = "", parameters = [], typescript } = described;
    const words = description ? [...description.replaceAll("*/", "* /").split("\n"), ""] : [];
    const facts = parameters
      .filter((one) => one.description !== undefined || one.default !== undefined)
      .map(({ name, description: about = "", default: value }) => oneLine(`@param ${name} ${about}${value === undefined ? "" : ` Default: ${JSON.stringify(value)}.`}`));
    const [head, ...comment] = (typescript ?? `${identifier}({ … }): Promise<unknown>`).split("  // ");
    return [
      `// Import it with: import { ${identifier} } from "./servers/${server.name}";`,
      "/**",
      ...[...words, ...facts].map((line) => ` * ${line}`.trimEnd()),
      " */",
      `export declare function ${head.replace(/^([^(]*)\(\{/, "$1(input: {")};${comment.length ? ` // ${comment.join("  // ")}` : ""}`,
      "",
    ].join("\n");
  };
  const toolsOf = (server) => answered(`servers/${server.name}`, () => toolList(server));
  const fileOf = (server, tool) => listedFile(() => textOfTool(server, tool));
  const indexOf = (server) => listedFile(() => textOfIndex(server));
  const folderOf = (server) =>
    listing(
      () => [[INDEX, indexOf(server)], ...toolsOf(server).map((tool) => [`${tool.identifier ?? tool.name}.ts`, fileOf(server, tool)])],
      (name) => {
        if (name === INDEX) return indexOf(server);
        if (!name.endsWith(".ts")) return undefined;
        const tool = answered(`servers/${server.name}/${name}`, () => findTool(server, name.slice(0, -".ts".length)));
        return tool && fileOf(server, tool);
      },
    );
  realm.serverTree = () =>
    listing(
      () => [...servers.values()].map((server) => [server.name, folderOf(server)]),
      (name) => {
        const server = findServer(name);
        return server && folderOf(server);
      },
    );
}
