// `URL` and `URLSearchParams`, and the module `node:url`. Native functions parse.
(native, realm) => {
  const { global, wellFormed } = realm;
  const { TypeError } = globalThis;
  const NAMES = ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"];
  const text = (value) => wellFormed(String(value));

  let link;
  let load;
  class URLSearchParams {
    #pairs = [];
    #changed = undefined;
    static {
      link = (params, changed) => (params.#changed = changed);
      load = (params, query) => (params.#pairs = parsed(query));
    }
    constructor(from = "") {
      if (typeof from !== "object" || from === null) {
        this.#pairs = parsed(text(from).replace(/^\?/, ""));
        return;
      }
      for (const pair of from[Symbol.iterator] ? from : Object.entries(from)) {
        const [name, value, ...more] = pair;
        if (more.length || value === undefined) throw new TypeError("Each query pair must be an iterable [name, value] tuple");
        this.#pairs.push([text(name), text(value)]);
      }
    }
    #change(pairs) {
      this.#pairs = pairs;
      this.#changed?.(this.toString());
    }
    get size() {
      return this.#pairs.length;
    }
    append(name, value) {
      this.#change([...this.#pairs, [text(name), text(value)]]);
    }
    delete(name, value) {
      this.#change(this.#pairs.filter(([other, its]) => other !== text(name) || (value !== undefined && its !== text(value))));
    }
    get(name) {
      return this.#pairs.find(([other]) => other === text(name))?.[1] ?? null;
    }
    getAll(name) {
      return this.#pairs.filter(([other]) => other === text(name)).map(([, value]) => value);
    }
    has(name, value) {
      return this.#pairs.some(([other, its]) => other === text(name) && (value === undefined || its === text(value)));
    }
    set(name, value) {
      const pair = this.#pairs.find(([other]) => other === text(name));
      if (!pair) return this.append(name, value);
      pair[1] = text(value);
      this.#change(this.#pairs.filter((other) => other === pair || other[0] !== pair[0]));
    }
    sort() {
      this.#change([...this.#pairs].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
    }
    forEach(callback, self) {
      for (const [name, value] of this.#pairs) callback.call(self, value, name, this);
    }
    keys() {
      return this.#pairs.map(([name]) => name).values();
    }
    values() {
      return this.#pairs.map(([, value]) => value).values();
    }
    entries() {
      return this.#pairs.map((pair) => [...pair]).values();
    }
    [Symbol.iterator]() {
      return this.entries();
    }
    toString() {
      return native.writeQuery(this.#pairs.flat());
    }
    get [Symbol.toStringTag]() {
      return "URLSearchParams";
    }
  }
  const parsed = (query) => {
    const flat = native.parseQuery(query);
    return Array.from({ length: flat.length / 2 }, (_, at) => [flat[2 * at], flat[2 * at + 1]]);
  };

  const parse = (url, base) => native.parseUrl(text(url), base === undefined ? undefined : text(base));
  const invalid = (input) => Object.assign(new TypeError("Invalid URL"), { code: "ERR_INVALID_URL", input });
  class URL {
    #parts;
    #params;
    constructor(url, base) {
      this.#parts = parse(url, base);
      if (!this.#parts.length) throw invalid(text(url));
    }
    static canParse(url, base) {
      return parse(url, base).length > 0;
    }
    static parse(url, base) {
      return URL.canParse(url, base) ? new URL(url, base) : null;
    }
    static {
      NAMES.forEach((name, at) => {
        const get = function () {
          return this.#parts[at];
        };
        const set = function (value) {
          const parts = native.changeUrl(this.#parts[0], name, text(value));
          if (!parts.length) throw invalid(text(value));
          this.#parts = parts;
          if (this.#params && (name === "search" || name === "href")) load(this.#params, this.search.slice(1));
        };
        Object.defineProperty(URL.prototype, name, { get, set: name === "origin" ? undefined : set, enumerable: true, configurable: true });
      });
    }
    get searchParams() {
      if (!this.#params) {
        this.#params = new URLSearchParams(this.search);
        link(this.#params, (query) => (this.#parts = native.changeUrl(this.#parts[0], "search", query)));
      }
      return this.#params;
    }
    toString() {
      return this.href;
    }
    toJSON() {
      return this.href;
    }
    get [Symbol.toStringTag]() {
      return "URL";
    }
  }

  const fileURLToPath = (url) => {
    const { protocol, pathname } = new URL(url);
    if (protocol !== "file:") throw Object.assign(new TypeError("The URL must be of scheme file"), { code: "ERR_INVALID_URL_SCHEME" });
    return decodeURIComponent(pathname);
  };
  const pathToFileURL = (path) => {
    const url = new URL("file:///");
    url.pathname = realm.standardModules.path.resolve(text(path)).replaceAll("%", "%25").replaceAll("?", "%3F").replaceAll("#", "%23");
    return url;
  };
  Object.assign(realm, { URL, URLSearchParams });
  global("URL", URL);
  global("URLSearchParams", URLSearchParams);
  realm.standardModules.url = realm.standardModule("node:url", { URL, URLSearchParams, fileURLToPath, pathToFileURL });
}
