// `RegExp`: everything that is written in terms of properties. ECMA-262 22.2.4 to 22.2.9.

function RegExp_(pattern, flags) {
  const patternIsRegExp = IsRegExp(pattern);
  let target = new.target;
  if (target === undefined) {
    target = $$REGEXP;
    if (patternIsRegExp && flags === undefined && pattern.constructor === target) return pattern;
  }
  let source = pattern;
  let letters = flags;
  if ($isRegExp(pattern)) {
    source = $regexpSource(pattern);
    if (flags === undefined) letters = $regexpFlags(pattern);
  } else if (patternIsRegExp) {
    source = pattern.source;
    if (flags === undefined) letters = pattern.flags;
  }
  const proto = ProtoFor(target, $$REGEXP_PROTO);
  const text = source === undefined ? "" : $toString(source);
  return $regexpAlloc(proto, text, letters === undefined ? "" : $toString(letters));
}

function ExecSlow(string) {
  const text = $toString(string);
  return $regexpExec(this, text, $toLength(this.lastIndex));
}

// ECMA-262 22.2.7.1
function RegExpExec(regexp, text) {
  const exec = regexp.exec;
  if ($isCallable(exec)) {
    const result = $call(exec, regexp, text);
    if (result !== null && !$isObject(result)) $typeError("exec must return an object or null");
    return result;
  }
  if (!$isRegExp(regexp)) $typeError("The receiver is not a RegExp object");
  return $call($$REGEXP_EXEC, regexp, text);
}

function RequireObject(value, method) {
  if (!$isObject(value)) $typeError("RegExp.prototype." + method + " requires that 'this' be an object");
}

function AdvanceStringIndex(text, index, unicode) {
  return unicode ? index + $codePointLength(text, index) : index + 1;
}

// After an empty match the next search begins one character later.
function StepOver(regexp, text, unicode) {
  regexp.lastIndex = AdvanceStringIndex(text, $toLength(regexp.lastIndex), unicode);
}

function HasLetter(flags, letter) { return $indexOf(flags, letter, 0) !== -1; }

const RegExpStatics = {
  get [$$SYM_SPECIES]() { return this; },
};

const RegExpMethods = {
  get flags() {
    RequireObject(this, "flags");
    let text = "";
    if (this.hasIndices) text = text + "d";
    if (this.global) text = text + "g";
    if (this.ignoreCase) text = text + "i";
    if (this.multiline) text = text + "m";
    if (this.dotAll) text = text + "s";
    if (this.unicode) text = text + "u";
    if (this.unicodeSets) text = text + "v";
    if (this.sticky) text = text + "y";
    return text;
  },
  test(string) {
    RequireObject(this, "test");
    return RegExpExec(this, $toString(string)) !== null;
  },
  toString() {
    RequireObject(this, "toString");
    const source = $toString(this.source);
    return "/" + source + "/" + $toString(this.flags);
  },
  [$$SYM_MATCH](string) {
    RequireObject(this, "[Symbol.match]");
    const text = $toString(string);
    const flags = $toString(this.flags);
    if (!HasLetter(flags, "g")) return RegExpExec(this, text);
    const unicode = HasLetter(flags, "u") || HasLetter(flags, "v");
    this.lastIndex = 0;
    const found = [];
    for (;;) {
      const result = RegExpExec(this, text);
      if (result === null) return found.length === 0 ? null : found;
      const matched = $toString(result[0]);
      $push(found, matched);
      if (matched === "") StepOver(this, text, unicode);
    }
  },
  [$$SYM_MATCH_ALL](string) {
    RequireObject(this, "[Symbol.matchAll]");
    const text = $toString(string);
    const constructor = SpeciesConstructor(this, $$REGEXP);
    const flags = $toString(this.flags);
    const matcher = $construct(constructor, constructor, [this, flags]);
    matcher.lastIndex = $toLength(this.lastIndex);
    const global = HasLetter(flags, "g");
    const unicode = HasLetter(flags, "u") || HasLetter(flags, "v");
    return $record(901, $$REGEXP_STRING_ITERATOR_PROTO, matcher, text, global, unicode, false);
  },
  [$$SYM_REPLACE](string, replaceValue) {
    RequireObject(this, "[Symbol.replace]");
    const text = $toString(string);
    const functional = $isCallable(replaceValue);
    const template = functional ? replaceValue : $toString(replaceValue);
    const flags = $toString(this.flags);
    const global = HasLetter(flags, "g");
    const unicode = HasLetter(flags, "u") || HasLetter(flags, "v");
    if (global) this.lastIndex = 0;
    const results = [];
    for (;;) {
      const result = RegExpExec(this, text);
      if (result === null) break;
      $push(results, result);
      if (!global) break;
      if ($toString(result[0]) === "") StepOver(this, text, unicode);
    }
    let replaced = "";
    let end = 0;
    for (let i = 0; i < results.length; i++) {
      const result = results[i];
      const count = $toLength(result.length);
      const matched = $toString(result[0]);
      const found = $toInteger(result.index);
      const position = found < 0 ? 0 : found > text.length ? text.length : found;
      const captures = [];
      for (let n = 1; n < count; n++) {
        const capture = result[n];
        $push(captures, capture === undefined ? undefined : $toString(capture));
      }
      const groups = result.groups;
      const replacement = functional
        ? CallReplacer(replaceValue, matched, captures, position, text, groups)
        : GetSubstitution(matched, text, position, captures, groups === undefined ? undefined : $toObject(groups), template);
      if (position >= end) {
        replaced = replaced + $substring(text, end, position) + replacement;
        end = position + matched.length;
      }
    }
    return end >= text.length ? replaced : replaced + $substring(text, end);
  },
  [$$SYM_SEARCH](string) {
    RequireObject(this, "[Symbol.search]");
    const text = $toString(string);
    const before = this.lastIndex;
    if (!$sameValue(before, 0)) this.lastIndex = 0;
    const result = RegExpExec(this, text);
    if (!$sameValue(this.lastIndex, before)) this.lastIndex = before;
    return result === null ? -1 : result.index;
  },
  [$$SYM_SPLIT](string, limit) {
    RequireObject(this, "[Symbol.split]");
    const text = $toString(string);
    const constructor = SpeciesConstructor(this, $$REGEXP);
    const flags = $toString(this.flags);
    const unicode = HasLetter(flags, "u") || HasLetter(flags, "v");
    const splitter = $construct(constructor, constructor, [this, HasLetter(flags, "y") ? flags : flags + "y"]);
    const parts = [];
    const most = limit === undefined ? 4294967295 : $toUint32(limit);
    if (most === 0) return parts;
    if (text === "") {
      if (RegExpExec(splitter, text) === null) $push(parts, text);
      return parts;
    }
    let start = 0;
    let at = 0;
    while (at < text.length) {
      splitter.lastIndex = at;
      const result = RegExpExec(splitter, text);
      let end = 0;
      if (result !== null) {
        end = $toLength(splitter.lastIndex);
        if (end > text.length) end = text.length;
      }
      if (result === null || end === start) {
        at = AdvanceStringIndex(text, at, unicode);
        continue;
      }
      $push(parts, $substring(text, start, at));
      if (parts.length === most) return parts;
      start = end;
      const count = $toLength(result.length);
      for (let n = 1; n < count; n++) {
        $push(parts, result[n]);
        if (parts.length === most) return parts;
      }
      at = start;
    }
    $push(parts, $substring(text, start));
    return parts;
  },
};

function CallReplacer(replacer, matched, captures, position, text, groups) {
  const args = [matched];
  for (let i = 0; i < captures.length; i++) $push(args, captures[i]);
  $push(args, position);
  $push(args, text);
  if (groups !== undefined) $push(args, groups);
  return $toString($callArray(replacer, undefined, args));
}

// Slots: matcher, text, global, unicode, done. It is done while it runs, so that an exception leaves it done.
const RegExpStringIteratorMethods = {
  next() {
    if ($recordTag(this) !== 901) $typeError("next called on something that is not a RegExp String Iterator");
    if ($recordGet(this, 4)) return { value: undefined, done: true };
    $recordSet(this, 4, true);
    const matcher = $recordGet(this, 0);
    const text = $recordGet(this, 1);
    const result = RegExpExec(matcher, text);
    if (result === null) return { value: undefined, done: true };
    if ($recordGet(this, 2)) {
      if ($toString(result[0]) === "") StepOver(matcher, text, $recordGet(this, 3));
      $recordSet(this, 4, false);
    }
    return { value: result, done: false };
  },
};
