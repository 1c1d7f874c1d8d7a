// The web platform: `URL`, `URLSearchParams`, `DOMException`, `atob`, `btoa`, `structuredClone`.

function CodedTypeError(code, message) {
  const error = MakeError($$TYPE_ERROR, $$TYPE_ERROR, $$TYPE_ERROR_PROTO, message, undefined);
  $createData(error, "code", code);
  return error;
}

function RequireArgument(given, name) {
  if (!given) throw CodedTypeError("ERR_MISSING_ARGS", "The \"" + name + "\" argument must be specified");
}

// The text of a URL or of its part: without lone surrogates.
function WebText(value) { return $wellFormed($toString(value)); }

// --- DOMException

function CodeOfException(name) {
  const codes = {
    __proto__: null, IndexSizeError: 1, HierarchyRequestError: 3, WrongDocumentError: 4, InvalidCharacterError: 5,
    NoModificationAllowedError: 7, NotFoundError: 8, NotSupportedError: 9, InUseAttributeError: 10, InvalidStateError: 11,
    SyntaxError: 12, InvalidModificationError: 13, NamespaceError: 14, InvalidAccessError: 15, TypeMismatchError: 17,
    SecurityError: 18, NetworkError: 19, AbortError: 20, URLMismatchError: 21, QuotaExceededError: 22, TimeoutError: 23,
    InvalidNodeTypeError: 24, DataCloneError: 25,
  };
  const code = codes[name];
  return code === undefined ? 0 : code;
}

function DOMException_(message = "", options = "Error") {
  if (new.target === undefined) $typeError("Class constructor DOMException cannot be invoked without 'new'");
  return MakeException(new.target, $toString(message), options);
}

function MakeException(target, message, options) {
  const given = $isObject(options) ? options.name : options;
  const name = given === undefined ? "Error" : $toString(given);
  const error = $errorNew(ProtoFor(target, $$DOM_EXCEPTION_PROTO));
  $hidden(error, "name", name);
  $errorMessage(error, message);
  $hidden(error, "code", CodeOfException(name));
  if ($isObject(options) && "cause" in options) $hidden(error, "cause", options.cause);
  $errorStack(error);
  return error;
}

// --- URL: a record (tag 918) of the serialized URL and its parameters.

function InvalidUrl(input, base) {
  const error = CodedTypeError("ERR_INVALID_URL", "Invalid URL");
  $createData(error, "input", input);
  if (base !== undefined) $createData(error, "base", base);
  return error;
}

function URL_(url, base = undefined) {
  if (new.target === undefined) $typeError("Class constructor URL cannot be invoked without 'new'");
  RequireArgument(arguments.length > 0, "url");
  const input = WebText(url);
  const against = base === undefined ? undefined : WebText(base);
  const href = $urlParse(input, against);
  if (href === undefined) throw InvalidUrl(input, against);
  return $record(918, ProtoFor(new.target, $$URL_PROTO), href, undefined);
}

const URLStatics = {
  canParse(url, base = undefined) {
    RequireArgument(arguments.length > 0, "url");
    const input = WebText(url);
    return $urlParse(input, base === undefined ? undefined : WebText(base)) !== undefined;
  },
  parse(url, base = undefined) {
    RequireArgument(arguments.length > 0, "url");
    const input = WebText(url);
    const href = $urlParse(input, base === undefined ? undefined : WebText(base));
    return href === undefined ? null : $record(918, $$URL_PROTO, href, undefined);
  },
};

function HrefOf(value) {
  if ($recordTag(value) !== 918) throw CodedTypeError("ERR_INVALID_THIS", "Value of \"this\" must be of type URL");
  return $recordGet(value, 0);
}

function SetUrlPart(url, part, value) {
  const href = HrefOf(url);
  $recordSet(url, 0, $urlSet(href, part, WebText(value)));
}

// The parameters follow the query.
function ReadParams(url) {
  const params = $recordGet(url, 1);
  if (params !== undefined) $recordSet(params, 0, $formRead(QueryOf(url)));
}

function QueryOf(url) {
  const search = $urlPart($recordGet(url, 0), "search");
  return search === "" ? "" : $substring(search, 1, search.length);
}

const URLPrototype = {
  get href() { return HrefOf(this); },
  set href(value) {
    HrefOf(this);
    const text = WebText(value);
    const href = $urlParse(text, undefined);
    if (href === undefined) throw InvalidUrl(text, undefined);
    $recordSet(this, 0, href);
    ReadParams(this);
  },
  get origin() { return $urlPart(HrefOf(this), "origin"); },
  get protocol() { return $urlPart(HrefOf(this), "protocol"); },
  set protocol(value) { SetUrlPart(this, "protocol", value); },
  get username() { return $urlPart(HrefOf(this), "username"); },
  set username(value) { SetUrlPart(this, "username", value); },
  get password() { return $urlPart(HrefOf(this), "password"); },
  set password(value) { SetUrlPart(this, "password", value); },
  get host() { return $urlPart(HrefOf(this), "host"); },
  set host(value) { SetUrlPart(this, "host", value); },
  get hostname() { return $urlPart(HrefOf(this), "hostname"); },
  set hostname(value) { SetUrlPart(this, "hostname", value); },
  get port() { return $urlPart(HrefOf(this), "port"); },
  set port(value) { SetUrlPart(this, "port", value); },
  get pathname() { return $urlPart(HrefOf(this), "pathname"); },
  set pathname(value) { SetUrlPart(this, "pathname", value); },
  get search() { return $urlPart(HrefOf(this), "search"); },
  set search(value) {
    SetUrlPart(this, "search", value);
    ReadParams(this);
  },
  get searchParams() {
    HrefOf(this);
    const known = $recordGet(this, 1);
    if (known !== undefined) return known;
    const params = $record(919, $$URL_SEARCH_PARAMS_PROTO, $formRead(QueryOf(this)), this);
    $recordSet(this, 1, params);
    return params;
  },
  get hash() { return $urlPart(HrefOf(this), "hash"); },
  set hash(value) { SetUrlPart(this, "hash", value); },
  toString() { return HrefOf(this); },
  toJSON() { return HrefOf(this); },
};

// --- URLSearchParams: a record (tag 919) of a list with names and values in turn, and the URL to which they belong.

function URLSearchParams_(init = undefined) {
  if (new.target === undefined) $typeError("Class constructor URLSearchParams cannot be invoked without 'new'");
  const proto = ProtoFor(new.target, $$URL_SEARCH_PARAMS_PROTO);
  let list = [];
  if (init === undefined || init === null) {
    // Empty.
  } else if ($isObject(init)) {
    const iterate = init[$$SYM_ITERATOR];
    if (iterate !== undefined && iterate !== null) {
      if (!$isCallable(iterate)) throw CodedTypeError("ERR_ARG_NOT_ITERABLE", "Query pairs must be iterable");
      for (const pair of init) {
        const values = $isObject(pair) && $isCallable(pair[$$SYM_ITERATOR]) ? ListFromIterable(pair) : [];
        if (values.length !== 2) throw CodedTypeError("ERR_INVALID_TUPLE", "Each query pair must be an iterable [name, value] tuple");
        $push(list, WebText(values[0]));
        $push(list, WebText(values[1]));
      }
    } else {
      list = PairsOfRecord(init);
    }
  } else {
    const text = WebText(init);
    list = $formRead(text[0] === "?" ? $substring(text, 1, text.length) : text);
  }
  return $record(919, proto, list, undefined);
}

// A name that occurs twice after its conversion keeps its first position.
function PairsOfRecord(init) {
  const list = [];
  const seen = $mapNew($$MAP_PROTO);
  const keys = EnumerableOwn(init, 0);
  for (let i = 0; i < keys.length; i++) {
    const name = WebText(keys[i]);
    const value = WebText(init[keys[i]]);
    const at = $tableGet(seen, name);
    if (at !== undefined) {
      list[at] = value;
    } else {
      $push(list, name);
      $tableSet(seen, name, list.length);
      $push(list, value);
    }
  }
  return list;
}

function ParamsOf(value) {
  if ($recordTag(value) !== 919) throw CodedTypeError("ERR_INVALID_THIS", "Value of \"this\" must be of type URLSearchParams");
  return $recordGet(value, 0);
}

function StoreParams(params, list) {
  $recordSet(params, 0, list);
  const url = $recordGet(params, 1);
  if (url !== undefined) $recordSet(url, 0, $urlSet($recordGet(url, 0), "search", $formWrite(list)));
}

const URLSearchParamsPrototype = {
  get size() { return ParamsOf(this).length / 2; },
  append(name, value) {
    ParamsOf(this);
    RequireArgument(arguments.length > 1, arguments.length === 0 ? "name" : "value");
    const text = WebText(name);
    const added = WebText(value);
    const list = ParamsOf(this);
    $push(list, text);
    $push(list, added);
    StoreParams(this, list);
  },
  delete(name, value = undefined) {
    ParamsOf(this);
    RequireArgument(arguments.length > 0, "name");
    const wanted = WebText(name);
    const also = value === undefined ? undefined : WebText(value);
    const list = ParamsOf(this);
    const kept = [];
    for (let i = 0; i < list.length; i += 2) {
      if (list[i] === wanted && (also === undefined || list[i + 1] === also)) continue;
      $push(kept, list[i]);
      $push(kept, list[i + 1]);
    }
    StoreParams(this, kept);
  },
  get(name) {
    ParamsOf(this);
    RequireArgument(arguments.length > 0, "name");
    const wanted = WebText(name);
    const list = ParamsOf(this);
    for (let i = 0; i < list.length; i += 2) if (list[i] === wanted) return list[i + 1];
    return null;
  },
  getAll(name) {
    ParamsOf(this);
    RequireArgument(arguments.length > 0, "name");
    const wanted = WebText(name);
    const list = ParamsOf(this);
    const values = [];
    for (let i = 0; i < list.length; i += 2) if (list[i] === wanted) $push(values, list[i + 1]);
    return values;
  },
  has(name, value = undefined) {
    ParamsOf(this);
    RequireArgument(arguments.length > 0, "name");
    const wanted = WebText(name);
    const also = value === undefined ? undefined : WebText(value);
    const list = ParamsOf(this);
    for (let i = 0; i < list.length; i += 2) {
      if (list[i] === wanted && (also === undefined || list[i + 1] === also)) return true;
    }
    return false;
  },
  set(name, value) {
    ParamsOf(this);
    RequireArgument(arguments.length > 1, arguments.length === 0 ? "name" : "value");
    const wanted = WebText(name);
    const text = WebText(value);
    const list = ParamsOf(this);
    const kept = [];
    let found = false;
    for (let i = 0; i < list.length; i += 2) {
      if (list[i] === wanted) {
        if (found) continue;
        found = true;
      }
      $push(kept, list[i]);
      $push(kept, list[i] === wanted ? text : list[i + 1]);
    }
    if (!found) {
      $push(kept, wanted);
      $push(kept, text);
    }
    StoreParams(this, kept);
  },
  sort() { StoreParams(this, $formSort(ParamsOf(this))); },
  forEach(callback, thisArg = undefined) {
    ParamsOf(this);
    if (!$isCallable(callback)) throw CodedTypeError("ERR_INVALID_ARG_TYPE", "The \"callback\" argument must be of type function.");
    for (let i = 0; i < ParamsOf(this).length; i += 2) {
      const list = ParamsOf(this);
      $call(callback, thisArg, list[i + 1], list[i], this);
    }
  },
  entries() { return NewParamsIterator(this, 2); },
  keys() { return NewParamsIterator(this, 0); },
  values() { return NewParamsIterator(this, 1); },
  toString() { return $formWrite(ParamsOf(this)); },
};

function NewParamsIterator(params, kind) {
  ParamsOf(params);
  return $record(920, $$URL_SEARCH_PARAMS_ITERATOR_PROTO, params, 0, kind);
}

const URLSearchParamsIteratorPrototype = {
  next() {
    if ($recordTag(this) !== 920) {
      throw CodedTypeError("ERR_INVALID_THIS", "Value of \"this\" must be of type URLSearchParamsIterator");
    }
    const list = ParamsOf($recordGet(this, 0));
    const at = $recordGet(this, 1);
    if (at >= list.length) return $iterResult(undefined, true);
    $recordSet(this, 1, at + 2);
    const kind = $recordGet(this, 2);
    return $iterResult(kind === 0 ? list[at] : kind === 1 ? list[at + 1] : [list[at], list[at + 1]], false);
  },
};

// --- Functions of the global object

const WebFunctions = {
  atob(data) {
    RequireArgument(arguments.length > 0, "data");
    const text = $base64Read($toString(data));
    if (text === undefined) {
      throw MakeException($$DOM_EXCEPTION, "The string to be decoded is not correctly encoded.", "InvalidCharacterError");
    }
    return text;
  },
  btoa(data) {
    RequireArgument(arguments.length > 0, "data");
    const text = $base64Write($toString(data));
    if (text === undefined) throw MakeException($$DOM_EXCEPTION, "Invalid character", "InvalidCharacterError");
    return text;
  },
  structuredClone(value, options = undefined) {
    RequireArgument(arguments.length > 0, "value");
    if (options !== undefined && options !== null && typeof options !== "object" && typeof options !== "function") {
      throw CodedTypeError("ERR_INVALID_ARG_TYPE", "The options argument must be either an object or undefined");
    }
    const transfer = options === undefined || options === null ? undefined : options.transfer;
    const seen = $mapNew($$MAP_PROTO);
    const moved = transfer === undefined ? [] : ListFromIterable(transfer);
    for (let i = 0; i < moved.length; i++) {
      const length = $bufferLength(moved[i]);
      if (length === undefined) throw CodedTypeError("ERR_INVALID_TRANSFER_OBJECT", "Found invalid object in transferList");
      if (length < 0) CloneRefused(moved[i]);
      if ($tableHas(seen, moved[i])) throw MakeException($$DOM_EXCEPTION, "Transfer list contains duplicate ArrayBuffer", "DataCloneError");
      $tableSet(seen, moved[i], $bufferNew($$ARRAY_BUFFER_PROTO, 0, undefined));
    }
    const clone = CloneOf(value, seen);
    for (let i = 0; i < moved.length; i++) {
      if ($bufferLength(moved[i]) < 0) CloneRefused(moved[i]);
      $bufferMove(moved[i], $tableGet(seen, moved[i]));
    }
    return clone;
  },
};

function CloneRefused(value) {
  const shown = typeof value === "function" ? $toString(value) : typeof value === "symbol" ? $shown(value) : "#<" + $className(value) + ">";
  throw MakeException($$DOM_EXCEPTION, shown + " could not be cloned.", "DataCloneError");
}

// Kinds as `$cloneKind` numbers them: 0 a value without parts, 1 copied by `$cloneLeaf`, 2 array, 3 map, 4 set, 5 error, 6 plain, 7 refused,
// 8 buffer, 9 view.
function CloneOf(from, seen) {
  const kind = $cloneKind(from);
  if (kind === 0) return from;
  if (kind === 7) CloneRefused(from);
  if ($tableHas(seen, from)) return $tableGet(seen, from);
  if (kind === 1) {
    const leaf = $cloneLeaf(from);
    $tableSet(seen, from, leaf);
    return leaf;
  }
  if (kind === 5) return CloneOfError(from, seen);
  if (kind === 8) return CloneOfBuffer(from, seen);
  if (kind === 9) return CloneOfView(from, seen);
  if (kind === 3 || kind === 4) return CloneOfCollection(from, seen, kind === 3);
  const to = kind === 2 ? [] : {};
  $tableSet(seen, from, to);
  if (kind === 2) to.length = from.length;
  const keys = EnumerableOwn(from, 0);
  for (let i = 0; i < keys.length; i++) {
    if ($ownEnumerable(from, keys[i])) $createData(to, keys[i], CloneOf(from[keys[i]], seen));
  }
  return to;
}

function CloneOfBuffer(from, seen) {
  const length = $bufferLength(from);
  if (length < 0) CloneRefused(from);
  const to = $bufferNew($$ARRAY_BUFFER_PROTO, length, $bufferMax(from));
  $tableSet(seen, from, to);
  $bytesCopy(to, 0, from, 0, length);
  return to;
}

function CloneOfView(from, seen) {
  const count = $viewCount(from);
  if (count < 0) CloneRefused(from);
  const buffer = CloneOf($viewBuffer(from), seen);
  const type = $elementType(from);
  const proto = type === undefined ? $$DATA_VIEW_PROTO : $elementProto(type);
  const to = $viewNew(type === undefined ? -1 : type, proto, buffer, $viewOffset(from), $viewTracks(from) ? undefined : count);
  $tableSet(seen, from, to);
  return to;
}

// The entries are those at the start; cloning them may run getters.
function CloneOfCollection(from, seen, isMap) {
  const to = isMap ? $mapNew($$MAP_PROTO) : $setNew($$SET_PROTO);
  $tableSet(seen, from, to);
  const list = [];
  let at = $tableAfter(from, -1);
  while (at >= 0) {
    $push(list, $tableKey(from, at));
    $push(list, $tableValue(from, at));
    at = $tableAfter(from, at);
  }
  for (let i = 0; i < list.length; i += 2) {
    const key = CloneOf(list[i], seen);
    $tableSet(to, key, isMap ? CloneOf(list[i + 1], seen) : key);
  }
  return to;
}

function CloneOfError(from, seen) {
  const name = from.name;
  let proto = $$ERROR_PROTO;
  if (name === "EvalError") proto = $$EVAL_ERROR_PROTO;
  else if (name === "RangeError") proto = $$RANGE_ERROR_PROTO;
  else if (name === "ReferenceError") proto = $$REFERENCE_ERROR_PROTO;
  else if (name === "SyntaxError") proto = $$SYNTAX_ERROR_PROTO;
  else if (name === "TypeError") proto = $$TYPE_ERROR_PROTO;
  else if (name === "URIError") proto = $$URI_ERROR_PROTO;
  const to = $errorNew(proto);
  $tableSet(seen, from, to);
  const message = from.message;
  if (message !== undefined) $errorMessage(to, $toString(message));
  const stack = from.stack;
  if (stack !== undefined) $hidden(to, "stack", $toString(stack));
  if ("cause" in from) $hidden(to, "cause", CloneOf(from.cause, seen));
  return to;
}
