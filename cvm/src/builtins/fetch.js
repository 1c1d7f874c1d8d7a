// `fetch`, `Headers`, `Request`, `Response`. Bodies are whole; a request is a call of the host, which suspends the program.

// --- Headers: a record (tag 940) of a list and whether it must not be changed. The list has three texts for each field: its name in
// lower case, the name as it was written first, its value.

function Headers_(init = undefined) {
  if (new.target === undefined) $typeError("Class constructor Headers cannot be invoked without 'new'");
  const headers = $record(940, ProtoFor(new.target, $$HEADERS_PROTO), [], false);
  FillHeaders(headers, init);
  return headers;
}

function FieldsOf(value) {
  if ($recordTag(value) !== 940) throw CodedTypeError("ERR_INVALID_THIS", "Value of \"this\" must be of type Headers");
  return $recordGet(value, 0);
}

function ChangeableFields(headers) {
  const list = FieldsOf(headers);
  if ($recordGet(headers, 1)) $typeError("immutable");
  return list;
}

function FieldName(name) {
  const text = $toString(name);
  const lower = $headerName(text);
  if (lower === undefined) $typeError("Headers: " + text + " is an invalid header name.");
  return lower;
}

function FieldValue(value) {
  const text = $toString(value);
  const trimmed = $headerValue(text);
  if (trimmed === undefined) $typeError("Headers: " + text + " is an invalid header value.");
  return trimmed;
}

// The name as it was written first, if there is such a field.
function WrittenName(list, name) {
  for (let i = 0; i < list.length; i += 3) if (list[i] === name) return list[i + 1];
  return undefined;
}

function AddField(list, name, written, value) {
  $push(list, name);
  $push(list, written);
  $push(list, value);
}

function AppendField(headers, name, value) {
  FieldsOf(headers);
  const written = $toString(name);
  const key = FieldName(written);
  const text = FieldValue(value);
  AddField(ChangeableFields(headers), key, written, text);
}

function NewHeaders(init) {
  const headers = $record(940, $$HEADERS_PROTO, [], false);
  FillHeaders(headers, init);
  return headers;
}

function FillHeaders(headers, init) {
  if (init === undefined) return;
  if (!$isObject(init)) {
    $typeError("Headers constructor: init is not one of sequence<sequence<ByteString>>, record<ByteString, ByteString>.");
  }
  if ($recordTag(init) === 940) {
    const from = FieldsOf(init);
    const list = FieldsOf(headers);
    for (let i = 0; i < from.length; i++) $push(list, from[i]);
    return;
  }
  const iterate = init[$$SYM_ITERATOR];
  if ($isCallable(iterate)) {
    for (const pair of init) {
      const values = $isObject(pair) ? ListFromIterable(pair) : [];
      if (values.length !== 2) {
        $typeError("Headers constructor: expected name/value pair to be length 2, found " + values.length + ".");
      }
      AppendField(headers, values[0], values[1]);
    }
    return;
  }
  const keys = EnumerableOwn(init, 0);
  for (let i = 0; i < keys.length; i++) AppendField(headers, keys[i], init[keys[i]]);
}

// Names and values in turn, sorted; fields of one name are one entry, but each cookie is an entry of its own.
function HeaderEntries(headers) {
  const list = FieldsOf(headers);
  const pairs = [];
  const seen = $mapNew($$MAP_PROTO);
  for (let i = 0; i < list.length; i += 3) {
    const name = list[i];
    const at = name === "set-cookie" ? undefined : $tableGet(seen, name);
    if (at === undefined) {
      $push(pairs, name);
      $tableSet(seen, name, pairs.length);
      $push(pairs, list[i + 2]);
    } else pairs[at] = pairs[at] + ", " + list[i + 2];
  }
  return $formSort(pairs);
}

function HeaderOf(headers, name) {
  const list = FieldsOf(headers);
  let found;
  for (let i = 0; i < list.length; i += 3) {
    if (list[i] === name) found = found === undefined ? list[i + 2] : found + ", " + list[i + 2];
  }
  return found;
}

function NewHeadersIterator(headers, kind) {
  return $record(941, $$HEADERS_ITERATOR_PROTO, HeaderEntries(headers), 0, kind);
}

// What is left without the fields of a name.
function WithoutField(list, name) {
  const kept = [];
  for (let i = 0; i < list.length; i += 3) {
    if (list[i] !== name) AddField(kept, list[i], list[i + 1], list[i + 2]);
  }
  return kept;
}

const HeadersPrototype = {
  append(name, value) { AppendField(this, name, value); },
  delete(name) {
    FieldsOf(this);
    const key = FieldName(name);
    $recordSet(this, 0, WithoutField(ChangeableFields(this), key));
  },
  get(name) {
    FieldsOf(this);
    const found = HeaderOf(this, FieldName(name));
    return found === undefined ? null : found;
  },
  getSetCookie() {
    const list = FieldsOf(this);
    const found = [];
    for (let i = 0; i < list.length; i += 3) if (list[i] === "set-cookie") $push(found, list[i + 2]);
    return found;
  },
  has(name) {
    FieldsOf(this);
    return HeaderOf(this, FieldName(name)) !== undefined;
  },
  set(name, value) {
    FieldsOf(this);
    const written = $toString(name);
    const key = FieldName(written);
    const text = FieldValue(value);
    const list = ChangeableFields(this);
    const first = WrittenName(list, key);
    const kept = WithoutField(list, key);
    AddField(kept, key, first === undefined ? written : first, text);
    $recordSet(this, 0, kept);
  },
  forEach(callback, thisArg = undefined) {
    FieldsOf(this);
    if (!$isCallable(callback)) {
      throw CodedTypeError("ERR_INVALID_ARG_TYPE", "Failed to execute 'forEach' on 'Headers': parameter 1 is not of type 'Function'.");
    }
    const pairs = HeaderEntries(this);
    for (let i = 0; i < pairs.length; i += 2) $call(callback, thisArg, pairs[i + 1], pairs[i], this);
  },
  entries() { return NewHeadersIterator(this, 2); },
  keys() { return NewHeadersIterator(this, 0); },
  values() { return NewHeadersIterator(this, 1); },
};

const HeadersIteratorPrototype = {
  next() {
    if ($recordTag(this) !== 941) {
      throw CodedTypeError("ERR_INVALID_THIS", "Value of \"this\" must be of type HeadersIterator");
    }
    const pairs = $recordGet(this, 0);
    const at = $recordGet(this, 1);
    if (at >= pairs.length) return $iterResult(undefined, true);
    $recordSet(this, 1, at + 2);
    const kind = $recordGet(this, 2);
    return $iterResult(kind === 0 ? pairs[at] : kind === 1 ? pairs[at + 1] : [pairs[at], pairs[at + 1]], false);
  },
};

// --- Bodies: the first three parts of both records are the bytes (null: no body), whether they were read, the header fields.

function BodyOwner(value, tag) {
  if ($recordTag(value) !== tag) {
    throw CodedTypeError("ERR_INVALID_THIS", "Value of \"this\" must be of type " + (tag === 942 ? "Response" : "Request"));
  }
  return value;
}

function SetBody(owner, body) {
  let bytes, type;
  if ($recordTag(body) === 919) {
    bytes = $textEncode($formWrite(ParamsOf(body)));
    type = "application/x-www-form-urlencoded;charset=UTF-8";
  } else if ($bufferLength(body) !== undefined || $isView(body)) {
    bytes = $bodyCopy(body);
  } else if ($isObject(body)) {
    $typeError("A body of a program is a string, URLSearchParams, an ArrayBuffer or a view of one; for an object use JSON.stringify");
  } else {
    bytes = $textEncode($toString(body));
    type = "text/plain;charset=UTF-8";
  }
  $recordSet(owner, 0, bytes);
  const headers = $recordGet(owner, 2);
  if (type !== undefined && HeaderOf(headers, "content-type") === undefined) {
    AddField(FieldsOf(headers), "content-type", "content-type", type);
  }
}

// The bytes, which can be read once.
function ReadBody(owner) {
  const bytes = $recordGet(owner, 0);
  if (bytes === null) return $textEncode("");
  if ($recordGet(owner, 1)) $typeError("Body is unusable: Body has already been read");
  $recordSet(owner, 1, true);
  return bytes;
}

function BodyText(owner) { return $textDecode("utf-8", undefined, ReadBody(owner), false, false, false)[0]; }

async function ReadAs(value, tag, kind) {
  const owner = BodyOwner(value, tag);
  if (kind === 0) return BodyText(owner);
  if (kind === 1) return $jsonParse(BodyText(owner));
  const copy = $bodyCopy(ReadBody(owner));
  return kind === 2 ? $viewBuffer(copy) : copy;
}

function IsBodyUsed(owner) { return $recordGet(owner, 0) !== null && $recordGet(owner, 1); }

function NoStream(value, tag) {
  if ($recordGet(BodyOwner(value, tag), 0) === null) return null;
  $typeError("The property body is not supported in programs: there are no streams; use text(), json(), bytes() or arrayBuffer()");
}

function NoPart(name, why) { $typeError("The method " + name + " is not supported in programs: " + why); }
function NoBlob() { NoPart("blob", "there is no Blob; use bytes() or arrayBuffer()"); }
function NoForm() { NoPart("formData", "there is no FormData; use text() and URLSearchParams"); }

// --- Response: a record (tag 942) with status, statusText, url, redirected and type behind the parts of its body.

function NewResponse(proto, headers) { return $record(942, proto, null, false, headers, 200, "", "", false, "default"); }

function Response_(body = null, init = undefined) {
  if (new.target === undefined) $typeError("Class constructor Response cannot be invoked without 'new'");
  if (init !== undefined && init !== null && !$isObject(init)) $typeError("Response constructor: Expected init to be an object.");
  return MakeResponse(ProtoFor(new.target, $$RESPONSE_PROTO), body, init);
}

function MakeResponse(proto, body, init) {
  const given = init === undefined || init === null ? $create(null) : init;
  const headers = NewHeaders(given.headers);
  const response = NewResponse(proto, headers);
  const wanted = given.status;
  const status = wanted === undefined ? 200 : $toNumber(wanted) & 65535;
  if (status < 200 || status > 599) $rangeError("init[\"status\"] must be in the range of 200 to 599, inclusive.");
  const text = given.statusText === undefined ? "" : $toString(given.statusText);
  if (!$isStatusText(text)) $typeError("Invalid statusText");
  $recordSet(response, 3, status);
  $recordSet(response, 4, text);
  if (body !== null && body !== undefined) {
    if (HasNullBody(status)) $typeError("Response constructor: Invalid response status code " + status);
    SetBody(response, body);
  }
  return response;
}

function HasNullBody(status) { return status === 101 || status === 103 || status === 204 || status === 205 || status === 304; }
function IsRedirect(status) { return status === 301 || status === 302 || status === 303 || status === 307 || status === 308; }

function Freeze(response) {
  $recordSet($recordGet(response, 2), 1, true);
  return response;
}

function JsonOf(data) {
  const plain = $jsonPlain(data, "");
  if (!$isMarker(plain)) return plain;
  const holder = $create($$OBJECT_PROTO);
  $createData(holder, "", data);
  return SerializeProperty([undefined, undefined, "", [], ""], holder, "");
}

const ResponseStatics = {
  error() {
    const response = NewResponse($$RESPONSE_PROTO, NewHeaders(undefined));
    $recordSet(response, 3, 0);
    $recordSet(response, 7, "error");
    return Freeze(response);
  },
  json(data, init = undefined) {
    const text = JsonOf(data);
    if (text === undefined) $typeError("Value is not JSON serializable");
    const response = MakeResponse($$RESPONSE_PROTO, null, init);
    const headers = $recordGet(response, 2);
    if (HeaderOf(headers, "content-type") === undefined) {
      AddField(FieldsOf(headers), "content-type", "content-type", "application/json");
    }
    if (HasNullBody($recordGet(response, 3))) {
      $typeError("Response constructor: Invalid response status code " + $recordGet(response, 3));
    }
    SetBody(response, text);
    return response;
  },
  redirect(url, status = 302) {
    const href = $urlParse(WebText(url), undefined);
    if (href === undefined) throw InvalidUrl(WebText(url), undefined);
    const code = $toNumber(status);
    if (!IsRedirect(code)) $rangeError("Invalid status code " + $toString(status));
    const response = NewResponse($$RESPONSE_PROTO, NewHeaders(undefined));
    $recordSet(response, 3, code);
    AddField(FieldsOf($recordGet(response, 2)), "location", "location", href);
    return Freeze(response);
  },
};

function ResponsePart(value, part) { return $recordGet(BodyOwner(value, 942), part); }

const ResponsePrototype = {
  get type() { return ResponsePart(this, 7); },
  get url() { return ResponsePart(this, 5); },
  get redirected() { return ResponsePart(this, 6); },
  get status() { return ResponsePart(this, 3); },
  get ok() {
    const status = ResponsePart(this, 3);
    return status >= 200 && status <= 299;
  },
  get statusText() { return ResponsePart(this, 4); },
  get headers() { return ResponsePart(this, 2); },
  get body() { return NoStream(this, 942); },
  get bodyUsed() { return IsBodyUsed(BodyOwner(this, 942)); },
  clone() {
    BodyOwner(this, 942);
    if (IsBodyUsed(this)) $typeError("Response.clone: Body has already been consumed.");
    const copy = NewResponse($$RESPONSE_PROTO, NewHeaders($recordGet(this, 2)));
    // The bytes are never changed: both may have the same.
    $recordSet(copy, 0, $recordGet(this, 0));
    for (let part = 3; part <= 7; part++) $recordSet(copy, part, $recordGet(this, part));
    return copy;
  },
  text() { return ReadAs(this, 942, 0); },
  json() { return ReadAs(this, 942, 1); },
  arrayBuffer() { return ReadAs(this, 942, 2); },
  bytes() { return ReadAs(this, 942, 3); },
  blob() { NoBlob(); },
  formData() { NoForm(); },
};

// --- Request: a record (tag 943) with method, url and redirect behind the parts of its body.

function Request_(input, init = undefined) {
  if (new.target === undefined) $typeError("Class constructor Request cannot be invoked without 'new'");
  if (arguments.length === 0) $typeError("Request constructor: 1 argument required, but only 0 present.");
  return MakeRequest(ProtoFor(new.target, $$REQUEST_PROTO), input, init);
}

// What a request cannot have is refused, not ignored.
function RefuseOptions(init) {
  const signal = init.signal;
  if (signal !== undefined && signal !== null) {
    $typeError("The option signal is not supported in programs: there is no AbortController; a row of kind net has timeout_ms");
  }
  const integrity = init.integrity;
  if (integrity !== undefined && integrity !== "") $typeError("The option integrity is not supported in programs");
  if (init.dispatcher !== undefined) $typeError("The option dispatcher is not supported in programs");
}

function MakeRequest(proto, input, options) {
  if (options !== undefined && options !== null && !$isObject(options)) $typeError("Request constructor: Expected init to be an object.");
  const init = options === undefined || options === null ? $create(null) : options;
  RefuseOptions(init);
  const from = $recordTag(input) === 943 ? input : undefined;
  const given = init.headers;
  const headers = NewHeaders(given === undefined && from !== undefined ? $recordGet(from, 2) : given);
  let url, method = "GET", redirect = "follow";
  if (from === undefined) {
    const text = WebText(input);
    url = $urlParse(text, undefined);
    if (url === undefined) {
      const error = MakeError($$TYPE_ERROR, $$TYPE_ERROR, $$TYPE_ERROR_PROTO, "Failed to parse URL from " + text, undefined);
      $hidden(error, "cause", InvalidUrl(text, undefined));
      throw error;
    }
    if ($urlPart(url, "username") !== "" || $urlPart(url, "password") !== "") {
      $typeError("Request cannot be constructed from a URL that includes credentials: " + text);
    }
  } else {
    method = $recordGet(from, 3);
    url = $recordGet(from, 4);
    redirect = $recordGet(from, 5);
  }
  const mode = init.redirect;
  if (mode !== undefined) {
    redirect = $toString(mode);
    if (redirect !== "follow" && redirect !== "error" && redirect !== "manual") {
      $typeError("Request constructor: " + redirect + " is not an accepted value of redirect (follow, error, manual).");
    }
  }
  const wanted = init.method;
  if (wanted !== undefined) {
    const text = $toString(wanted);
    method = $methodName(text);
    if (method === undefined) $typeError("'" + text + "' is not a valid HTTP method.");
  }
  const request = $record(943, proto, null, false, headers, method, url, redirect);
  const idle = method === "GET" || method === "HEAD";
  const body = init.body;
  if (body !== undefined && body !== null) {
    if (idle) $typeError("Request with GET/HEAD method cannot have body.");
    SetBody(request, body);
  } else if (from !== undefined && body === undefined && $recordGet(from, 0) !== null) {
    if (idle) $typeError("Request with GET/HEAD method cannot have body.");
    if (IsBodyUsed(from)) $typeError("Cannot construct a Request with a Request object that has already been used.");
    $recordSet(request, 0, ReadBody(from));
  }
  return request;
}

function RequestPart(value, part) { return $recordGet(BodyOwner(value, 943), part); }

const RequestPrototype = {
  get method() { return RequestPart(this, 3); },
  get url() { return RequestPart(this, 4); },
  get headers() { return RequestPart(this, 2); },
  get redirect() { return RequestPart(this, 5); },
  get body() { return NoStream(this, 943); },
  get bodyUsed() { return IsBodyUsed(BodyOwner(this, 943)); },
  clone() {
    BodyOwner(this, 943);
    if (IsBodyUsed(this)) $typeError("Request.clone: Body has already been consumed.");
    return $record(943, $$REQUEST_PROTO, $recordGet(this, 0), false, NewHeaders($recordGet(this, 2)), $recordGet(this, 3),
      $recordGet(this, 4), $recordGet(this, 5));
  },
  text() { return ReadAs(this, 943, 0); },
  json() { return ReadAs(this, 943, 1); },
  arrayBuffer() { return ReadAs(this, 943, 2); },
  bytes() { return ReadAs(this, 943, 3); },
  blob() { NoBlob(); },
  formData() { NoForm(); },
};

// --- fetch: each request of a chain of redirects is a call of the host, and is judged anew.

function FetchError(code, message) {
  const cause = MakeError($$ERROR, $$ERROR, $$ERROR_PROTO, message, undefined);
  if (code !== "") $createData(cause, "code", code);
  const error = MakeError($$TYPE_ERROR, $$TYPE_ERROR, $$TYPE_ERROR_PROTO, "fetch failed", undefined);
  $hidden(error, "cause", cause);
  return error;
}

// Names and values in turn, as they are sent.
function SentFields(pairs, bytes) {
  const fields = [];
  const seen = $mapNew($$MAP_PROTO);
  for (let i = 0; i < pairs.length; i++) {
    $push(fields, pairs[i]);
    if (i % 2 === 0) $tableSet(seen, pairs[i], true);
  }
  const defaults = ["accept", "*/*", "accept-language", "*", "user-agent", "vm-system", "accept-encoding", "br, gzip, deflate"];
  for (let i = 0; i < defaults.length; i += 2) {
    if ($tableHas(seen, defaults[i])) continue;
    $push(fields, defaults[i]);
    $push(fields, defaults[i + 1]);
  }
  if (bytes !== null && bytes.length > 0 && !$tableHas(seen, "content-length")) {
    $push(fields, "content-length");
    $push(fields, $toString(bytes.length));
  }
  return fields;
}

function FetchWhole(input, init) {
  const request = MakeRequest($$REQUEST_PROTO, input, init);
  const mode = $recordGet(request, 5);
  let method = $recordGet(request, 3);
  let url = $recordGet(request, 4);
  let bytes = $recordGet(request, 0);
  let pairs = HeaderEntries($recordGet(request, 2));
  let redirects = 0;
  while (true) {
    const protocol = $urlPart(url, "protocol");
    if (protocol !== "http:" && protocol !== "https:") throw FetchError("", "unknown scheme");
    if ($isBadPort($urlPart(url, "port"))) throw FetchError("", "bad port");
    const shown = $urlSet(url, "hash", "");
    // Status, text, names and values in turn, bytes; or the code and the message of an error.
    const reply = $httpRequest(method, shown, SentFields(pairs, bytes), bytes);
    if (typeof reply[0] === "string") throw FetchError(reply[0], reply[1]);
    const status = reply[0];
    const headers = NewHeaders(undefined);
    const list = FieldsOf(headers);
    for (let i = 0; i < reply[2].length; i += 2) AddField(list, reply[2][i], reply[2][i], reply[2][i + 1]);
    const location = HeaderOf(headers, "location");
    if (!IsRedirect(status) || mode === "manual" || location === undefined) {
      const response = NewResponse($$RESPONSE_PROTO, headers);
      if (method !== "HEAD" && !HasNullBody(status)) $recordSet(response, 0, reply[3]);
      $recordSet(response, 3, status);
      $recordSet(response, 4, reply[1]);
      $recordSet(response, 5, shown);
      $recordSet(response, 6, redirects > 0);
      $recordSet(response, 7, "basic");
      return Freeze(response);
    }
    if (mode === "error") throw FetchError("", "unexpected redirect");
    let target = $urlParse(location, url);
    if (target === undefined) throw FetchError("ERR_INVALID_URL", "Invalid URL");
    const scheme = $urlPart(target, "protocol");
    if (scheme !== "http:" && scheme !== "https:") throw FetchError("", "URL scheme must be a HTTP(S) scheme");
    redirects++;
    if (redirects > 20) throw FetchError("", "redirect count exceeded");
    const plain = ((status === 301 || status === 302) && method === "POST") || (status === 303 && method !== "GET" && method !== "HEAD");
    if (plain) {
      method = "GET";
      bytes = null;
    }
    pairs = $redirectFields(pairs, $urlPart(target, "origin") !== $urlPart(url, "origin"), plain);
    if ($urlPart(target, "hash") === "") target = $urlSet(target, "hash", $urlPart(url, "hash"));
    url = target;
  }
}

async function FetchAsync(input, init) { return FetchWhole(input, init); }

const FetchFunctions = {
  fetch(input, init = undefined) { return FetchAsync(input, init); },
};
