// Functions on files in memory: those of `node:fs`, and the global `files`.
(native, realm) => {
  const { asBuffer, bytesOf, decodeBytes, isOrdinary, names, standardModule } = realm;
  const {
    add, directory, drop, fileAt, fileError, locate, missing, newFile, put, refused, requireChangeable, requireUnlisted, resize, statusAt, take,
    withoutServers, writeAt, LEVELS_MAX,
  } = realm.fileSystem;

  const optionsOf = (options) => (typeof options === "string" ? { encoding: options } : (options ?? {}));

  class Stats {
    constructor({ isDirectory, size, modifiedMs, inode }) {
      const time = new Date(modifiedMs);
      Object.assign(this, { dev: 1, ino: inode, mode: isDirectory ? 0o40755 : 0o100644, nlink: 1, uid: 0, gid: 0, size });
      for (const kind of ["atime", "mtime", "ctime", "birthtime"]) Object.assign(this, { [`${kind}Ms`]: modifiedMs, [kind]: time });
      Object.defineProperty(this, "isFolder", { value: isDirectory });
    }
    isDirectory() {
      return this.isFolder;
    }
    isFile() {
      return !this.isFolder;
    }
    isSymbolicLink() {
      return false;
    }
  }
  class Dirent {
    #isDirectory;
    #isLink;
    constructor(name, parentPath, { isDirectory, isLink = false }) {
      Object.assign(this, { name, parentPath, path: parentPath });
      this.#isDirectory = isDirectory;
      this.#isLink = isLink;
    }
    isDirectory() {
      return this.#isDirectory && !this.#isLink;
    }
    isFile() {
      return !this.#isDirectory && !this.#isLink;
    }
    isSymbolicLink() {
      return this.#isLink;
    }
  }

  const status = (path, call) => {
    const place = locate(path, call);
    const found = statusAt(place);
    if (!found) throw missing(place, call);
    if (place.isFolder && !found.isDirectory) throw fileError("ENOTDIR", place.given, call);
    return found;
  };
  const noted = new Set();
  const noteOnce = (words) => {
    if (noted.has(words)) return;
    noted.add(words);
    native.print(true, `${words}\n`);
  };
  const isThere = (path) => {
    try {
      return status(path, "access") !== undefined;
    } catch (error) {
      if (error?.code === "EACCES") noteOnce(`existsSync is false: ${error.message}`);
      return false;
    }
  };
  const copyOf = (file) => asBuffer(file.bytes.slice(0, file.size));

  const readFile = (path, options) => {
    const { encoding } = optionsOf(options);
    const bytes = copyOf(fileAt(path, "open"));
    return encoding && encoding !== "buffer" ? decodeBytes(bytes, encoding) : bytes;
  };
  // Opens a file for writing with a flag of Node: `w`, `a`, `wx`, `ax` or `r+`.
  const openToWrite = (path, flag) => {
    const place = flag.startsWith("r") ? locate(path, "open") : withoutServers(locate(path, "open"));
    if (place.isHost) return undefined;
    requireUnlisted(place, "open");
    if (place.isFolder && place.parent && !flag.startsWith("r")) throw fileError("EISDIR", place.given, "open");
    if (place.node && flag.includes("x")) throw fileError("EEXIST", place.given, "open");
    if (place.node?.isDirectory) throw fileError("EISDIR", place.given, "open");
    if (place.node && place.isFolder) throw fileError("ENOTDIR", place.given, "open");
    if (place.node) return place.node;
    if (flag.startsWith("r")) throw missing(place, "open");
    const file = newFile();
    add(place, file, "open");
    return file;
  };
  // The answer about a file of the host; null if there is no such file. Throws if the program may not know.
  const orNothing = (place, ask) => {
    try {
      const answer = ask();
      if (answer !== undefined) return answer;
    } catch (error) {
      if (error.code === "ENOENT") return null;
      throw error;
    }
    throw refused(place, "open", false);
  };
  const saveOnHost = (path, bytes, flag) => {
    const place = locate(path, "open");
    const host = realm.filesHost;
    if (!host?.maySave(place.path)) throw refused(place, "open");
    if (flag.includes("x") && orNothing(place, () => host.stat(place.path))) throw fileError("EEXIST", place.given, "open");
    const before = flag === "a" || flag === "a+" ? orNothing(place, () => host.fetch(place.path)) : undefined;
    if (flag.startsWith("r")) throw fileError("EINVAL", place.given, "open", { words: "a file of the host is written as a whole: read it, and write it with the flag w" });
    const whole = new Uint8Array((before?.length ?? 0) + bytes.length);
    if (before) whole.set(before);
    whole.set(bytes, before?.length ?? 0);
    host.save(place.path, whole);
  };
  const write = (path, data, options, defaultFlag) => {
    const { encoding, flag = defaultFlag } = optionsOf(options);
    const bytes = bytesOf(data, encoding ?? "utf8");
    const file = openToWrite(path, flag);
    if (!file) return saveOnHost(path, bytes, flag);
    if (flag.startsWith("w")) resize(file, 0, "write");
    writeAt(file, flag.startsWith("a") ? file.size : 0, bytes, "write");
  };
  const writeFile = (path, data, options) => write(path, data, options, "w");
  const appendFile = (path, data, options) => write(path, data, options, "a");

  const entriesOf = (place, call) => {
    const { node } = place;
    if (!node) {
      const listed = realm.filesHost?.list(place.path);
      if (!listed) throw missing(place, call);
      return listed;
    }
    if (!node.isDirectory) throw fileError("ENOTDIR", place.given, call);
    return [...node.entries].sort(([a], [b]) => (a < b ? -1 : 1));
  };
  const readdir = (path, options) => {
    const { withFileTypes, recursive } = optionsOf(options);
    const place = locate(path, "scandir");
    const found = [];
    const collect = (place, prefix) => {
      for (const [name, facts] of entriesOf(place, "scandir")) {
        const parent = prefix ? `${place.given}` : String(path);
        found.push(withFileTypes ? new Dirent(name, parent, facts) : prefix + name);
        // As in Node, a link to a folder is not entered: it may lead to a folder above it.
        if (recursive && facts.isDirectory && !facts.isLink) enter(facts, `${place.given}/${name}`, `${prefix}${name}/`);
      }
    };
    // A server that is not available must not hide the tools of others.
    const enter = (facts, path, prefix) => {
      try {
        collect(locate(path, "scandir"), prefix);
      } catch (error) {
        if (!facts.isListed || error?.code !== "EIO") throw error;
        noteOnce(`readdir: ${error.message}`);
      }
    };
    collect(place, "");
    return found;
  };
  // Makes a folder of the host. Whether it is new.
  const makeOnHost = (place) => {
    const made = realm.filesHost?.makeFolder(place.path);
    if (made === undefined) throw refused(place, "mkdir");
    return made;
  };
  const makeAllOnHost = (place) => {
    try {
      return makeOnHost(place) ? place.path : undefined;
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
    }
    const first = makeAllOnHost(locate(place.path.slice(0, place.path.lastIndexOf("/")) || "/", "mkdir"));
    makeOnHost(place);
    return first ?? place.path;
  };
  const mkdir = (path, options) => {
    const place = locate(path, "mkdir");
    if (place.isHost) {
      if (optionsOf(options).recursive) return makeAllOnHost(place);
      if (!makeOnHost(place)) throw fileError("EEXIST", place.given, "mkdir");
      return;
    }
    if (!optionsOf(options).recursive) {
      const target = withoutServers(place);
      if (target.node) throw fileError("EEXIST", place.given, "mkdir");
      return add(target, directory(), "mkdir");
    }
    let first;
    let at = "";
    for (const name of place.path.slice(1).split("/")) {
      at += `/${name}`;
      // A new folder in the tree of MCP servers hides the tree.
      const part = place.node && at !== place.path ? locate(at, "mkdir") : withoutServers(locate(at, "mkdir"));
      if (part.node && !part.node.isDirectory) throw fileError(at === place.path && !place.isFolder ? "EEXIST" : "ENOTDIR", place.given, "mkdir");
      if (part.node) continue;
      add({ ...part, given: place.given }, directory(), "mkdir");
      first ??= at;
    }
    return first;
  };
  const present = (path, call) => {
    const place = locate(path, call);
    if (!place.node) throw place.isHost ? refused(place, call) : missing(place, call);
    if (place.isFolder && !place.node.isDirectory) throw fileError("ENOTDIR", place.given, call);
    return place;
  };
  const discard = (place, call) => {
    requireChangeable(place, call);
    take(place);
    drop(place.node);
  };
  const unlink = (path) => {
    const place = present(path, "unlink");
    if (place.node.isDirectory) throw fileError("EISDIR", place.given, "unlink");
    discard(place, "unlink");
  };
  const rmdir = (path) => {
    const place = present(path, "rmdir");
    if (!place.node.isDirectory) throw fileError("ENOTDIR", place.given, "rmdir");
    if (place.node.entries.size) throw fileError("ENOTEMPTY", place.given, "rmdir");
    discard(place, "rmdir");
  };
  const rm = (path, options) => {
    const { force, recursive } = optionsOf(options);
    const place = locate(path, "rm");
    if (place.problem === "ENOENT" && force) return;
    const { node } = present(path, "rm");
    if (node.isDirectory && !recursive) {
      const error = new Error(`Path is a directory: rm returned EISDIR (is a directory) ${place.given}`);
      throw Object.assign(error, { code: "ERR_FS_EISDIR", errno: 21, syscall: "rm", path: place.given });
    }
    discard(place, "rm");
  };
  const rename = (from, to) => {
    const [source, target] = [locate(from, "rename"), withoutServers(locate(to, "rename"))];
    const fail = (code) => fileError(code, source.given, "rename", { dest: target.given });
    for (const place of [source, target]) {
      if (place.isHost) throw refused(place, "rename");
      if (!place.node && !place.parent) throw fail(place.problem);
    }
    if (!source.node) throw fail("ENOENT");
    if ((source.isFolder || target.isFolder) && !source.node.isDirectory) throw fail("ENOTDIR");
    if (source.path === target.path) return;
    for (const place of [source, target]) requireChangeable(place, "rename");
    const before = target.node;
    if (source.node.isDirectory && target.path.startsWith(`${source.path}/`)) throw fail("EINVAL");
    if (before?.isDirectory && source.path.startsWith(`${target.path}/`)) throw fail("ENOTEMPTY");
    if (before && before.isDirectory !== source.node.isDirectory) throw fail(before.isDirectory ? "EISDIR" : "ENOTDIR");
    if (before?.isDirectory && before.entries.size) throw fail("ENOTEMPTY");
    const depth = (node) => (node.isDirectory ? 1 + Math.max(0, ...Array.from(node.entries.values(), depth)) : 1);
    if (target.path.split("/").length - 2 + depth(source.node) > LEVELS_MAX) throw fail("ENAMETOOLONG");
    take(source);
    put(target, source.node);
    if (!source.node.isDirectory) source.node.changed = true;
    if (before) drop(before);
  };
  const copyFile = (from, to, mode = 0) => {
    try {
      writeFile(to, copyOf(fileAt(from, "copyfile")), { flag: mode & 1 ? "wx" : "w" });
    } catch (error) {
      if (!error.errno || error.code === "ENOSPC" || error.code === "EPERM") throw error;
      throw fileError(error.code, String(from), "copyfile", { dest: String(to) });
    }
  };
  const cp = (from, to, options) => {
    const source = status(from, "cp");
    if (!source.isDirectory) return copyFile(from, to);
    if (!optionsOf(options).recursive) throw fileError("EISDIR", String(from), "cp", { words: "Recursive option not enabled, cannot copy a directory" });
    if (`${locate(to, "cp").path}/`.startsWith(`${locate(from, "cp").path}/`)) throw fileError("EINVAL", String(from), "cp");
    mkdir(to, { recursive: true });
    for (const name of readdir(from)) cp(`${from}/${name}`, `${to}/${name}`, options);
  };
  const stat = (path, options) => {
    if (optionsOf(options).throwIfNoEntry === false && !isThere(path)) return undefined;
    return new Stats(status(path, "stat"));
  };
  const access = (path, mode = 0) => {
    status(path, "access");
    const place = locate(path, "access");
    if (mode & constants.W_OK && place.isHost && !realm.filesHost?.maySave(place.path)) throw refused(place, "access");
  };
  const truncate = (path, length = 0) => {
    const place = locate(path, "open");
    if (place.isHost) throw refused(place, "open");
    requireUnlisted(place, "open");
    resize(fileAt(path, "open"), length, "truncate");
  };
  const realpath = (path) => {
    status(path, "realpath");
    return locate(path, "realpath").path;
  };
  const mkdtemp = (prefix) => {
    const path = `${prefix}${Array.from(native.randomBytes(6), (byte) => (byte % 36).toString(36)).join("")}`;
    mkdir(path);
    return path;
  };

  const sync = { access, appendFile, copyFile, cp, mkdir, mkdtemp, readFile, readdir, realpath, rename, rm, rmdir, stat, lstat: stat, truncate, unlink, writeFile };
  const constants = { F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, COPYFILE_EXCL: 1 };
  const fileModule = (name, exports) => standardModule(name, exports, ", where files are in memory");
  const promised = (call) => async (...values) => call(...values);
  const withCallback = (call) => (...values) => {
    const done = values.pop();
    if (typeof done !== "function") throw Object.assign(new TypeError('The "cb" argument must be of type function'), { code: "ERR_INVALID_ARG_TYPE" });
    promised(call)(...values).then((value) => done(null, value), done);
  };
  const mapped = (change) => Object.fromEntries(Object.entries(sync).map(([name, call]) => change(name, call)));
  const promises = fileModule("node:fs/promises", { ...mapped((name, call) => [name, promised(call)]), constants });
  const fs = fileModule("node:fs", {
    ...mapped((name, call) => [`${name}Sync`, call]),
    existsSync: isThere,
    ...mapped((name, call) => [name, withCallback(call)]),
    promises,
    constants,
  });

  const files = {
    read: (path) => readFile(path),
    readText: (path) => readFile(path, "utf8"),
    write: (path, data) => writeFile(path, data),
    append: (path, data) => appendFile(path, data),
    list: (path = ".") => readdir(path),
    remove: (path) => rm(path, { recursive: true }),
    exists: isThere,
  };
  names.set(files, "[files in memory]");
  Object.assign(realm.standardModules, { fs, "fs/promises": promises, files });
  realm.offerGlobal("files", files);
}
