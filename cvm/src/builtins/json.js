// JSON.stringify: values, toJSON and replacers may call user code anywhere.

function QuoteOrPlain(value) { return $jsonQuote(value); }

function SerializeProperty(state, holder, key) {
  let value = holder[key];
  if ($isObject(value) || typeof value === "bigint") {
    const toJSON = value.toJSON;
    if ($isCallable(toJSON)) value = $call(toJSON, value, $toString(key));
  }
  if (state[0] !== undefined) value = $call(state[0], holder, $toString(key), value);
  if ($isObject(value)) {
    if ($recordTag(value) === 900) return value.rawJSON;
    value = $jsonUnwrap(value);
  }
  if ($isObject(value) && $isWrapper(value)) value = $isWrapper(value) === 1 ? $toNumber(value) : $toString(value);
  if (value === null) return "null";
  if (value === true) return "true";
  if (value === false) return "false";
  if (typeof value === "string") return $jsonQuote(value);
  if (typeof value === "number") return $isFinite(value) ? $toString(value) : "null";
  if (typeof value === "bigint") $typeError("Do not know how to serialize a BigInt");
  if (!$isObject(value) || $isCallable(value)) return undefined;
  const list = state[3];
  for (let i = 0; i < list.length; i++) if (list[i] === value) $typeError("Converting circular structure to JSON");
  $push(list, value);
  const outer = state[4];
  const inner = outer + state[2];
  state[4] = inner;
  const isArray = $isArray(value);
  let text = "";
  let any = false;
  const separator = state[2] === "" ? "," : ",\n" + inner;
  if (isArray) {
    const length = $toLength(value.length);
    for (let i = 0; i < length; i++) {
      const item = SerializeProperty(state, value, i);
      if (any) text += separator;
      any = true;
      text += item === undefined ? "null" : item;
    }
  } else {
    const keys = state[1] === undefined ? EnumerableOwn(value, 0) : state[1];
    const colon = state[2] === "" ? ":" : ": ";
    for (let i = 0; i < keys.length; i++) {
      const item = SerializeProperty(state, value, keys[i]);
      if (item === undefined) continue;
      if (any) text += separator;
      any = true;
      text += $jsonQuote($toString(keys[i])) + colon + item;
    }
  }
  $pop(list);
  state[4] = outer;
  const open = isArray ? "[" : "{";
  const close = isArray ? "]" : "}";
  if (!any) return open + close;
  return state[2] === "" ? open + text + close : open + "\n" + inner + text + "\n" + outer + close;
}

function InternalizeProperty(holder, name, reviver, source) {
  const value = holder[name];
  if ($isObject(value)) {
    if ($isArray(value)) {
      const length = $toLength(value.length);
      for (let i = 0; i < length; i++) InternalizeElement(value, $toString(i), reviver);
    } else {
      const keys = EnumerableOwn(value, 0);
      for (let i = 0; i < keys.length; i++) InternalizeElement(value, keys[i], reviver);
    }
  }
  const context = $create($$OBJECT_PROTO);
  if (!$isObject(value) && source !== undefined) $createData(context, "source", source);
  return $call(reviver, holder, name, value, context);
}

function InternalizeElement(holder, name, reviver) {
  const value = holder[name];
  const source = typeof value === "string" ? $jsonQuote(value) : $isObject(value) || value === undefined ? undefined : $toString(value);
  const element = InternalizeProperty(holder, name, reviver, source);
  if (element === undefined) DeleteKey(holder, name);
  else if ($isProxy(holder)) ProxyDefine(holder, name, DataDescriptor(element));
  else $createData(holder, name, element);
}

// An object that `rawJSON` made is a record with the tag 900.
const JSONStatics = {
  isRawJSON(value) { return $recordTag(value) === 900; },
  rawJSON(text) {
    const source = $toString(text);
    if (!$jsonIsPrimitive(source)) $syntaxError("Invalid value for JSON.rawJSON");
    const raw = $record(900, null);
    $createData(raw, "rawJSON", source);
    const frozen = DataDescriptor(source);
    frozen.writable = false;
    frozen.configurable = false;
    $defineOwn(raw, "rawJSON", frozen);
    $preventExtensions(raw);
    return raw;
  },
  parse(text, reviver) {
    const unfiltered = $jsonParse($toString(text));
    if (!$isCallable(reviver)) return unfiltered;
    const root = $create($$OBJECT_PROTO);
    $createData(root, "", unfiltered);
    const source = $isObject(unfiltered) ? undefined : typeof unfiltered === "string" ? $jsonQuote(unfiltered) : $toString(unfiltered);
    return InternalizeProperty(root, "", reviver, source);
  },
  stringify(value, replacer, space) {
    // state: replacer function, property list, gap, stack, indent
    const state = [undefined, undefined, "", [], ""];
    if ($isCallable(replacer)) state[0] = replacer;
    else if ($isObject(replacer) && $isArray(replacer)) {
      const list = [];
      const n = $toLength(replacer.length);
      for (let i = 0; i < n; i++) {
        const v = replacer[i];
        let item;
        if (typeof v === "string") item = v;
        else if (typeof v === "number") item = $toString(v);
        else if ($isObject(v) && $isWrapper(v)) item = $toString(v);
        if (item !== undefined && !$includesKey(list, item)) $push(list, item);
      }
      state[1] = list;
    }
    let gap = space;
    if ($isObject(gap)) { const w = $isWrapper(gap); if (w === 1) gap = $toNumber(gap); else if (w === 2) gap = $toString(gap); }
    if (typeof gap === "number") {
      let n = $toInteger(gap);
      n = n > 10 ? 10 : n;
      let s = "";
      for (let i = 0; i < n; i++) s += " ";
      state[2] = s;
    } else if (typeof gap === "string") state[2] = $cut(gap, 10);
    if (state[0] === undefined && state[1] === undefined) {
      const plain = $jsonPlain(value, state[2]);
      if (!$isMarker(plain)) return plain;
    }
    const holder = $create($$OBJECT_PROTO);
    $createData(holder, "", value);
    return SerializeProperty(state, holder, "");
  },
};
