// Error constructors.

function MakeError(newTarget, active, fallback, message, options) {
  const e = $errorNew(ProtoFor(newTarget === undefined ? active : newTarget, fallback));
  if (message !== undefined) $errorMessage(e, $toString(message));
  if ($isObject(options) && "cause" in options) $hidden(e, "cause", options.cause);
  $errorStack(e);
  return e;
}

function Error_(message, options = undefined) { return MakeError(new.target, $activeFunction(), $$ERROR_PROTO, message, options); }
function TypeError_(message, options = undefined) { return MakeError(new.target, $activeFunction(), $$TYPE_ERROR_PROTO, message, options); }
function RangeError_(message, options = undefined) { return MakeError(new.target, $activeFunction(), $$RANGE_ERROR_PROTO, message, options); }
function ReferenceError_(message, options = undefined) { return MakeError(new.target, $activeFunction(), $$REFERENCE_ERROR_PROTO, message, options); }
function SyntaxError_(message, options = undefined) { return MakeError(new.target, $activeFunction(), $$SYNTAX_ERROR_PROTO, message, options); }
function EvalError_(message, options = undefined) { return MakeError(new.target, $activeFunction(), $$EVAL_ERROR_PROTO, message, options); }
function URIError_(message, options = undefined) { return MakeError(new.target, $activeFunction(), $$URI_ERROR_PROTO, message, options); }
function CCError_(message, options = undefined) { return MakeError(new.target, $activeFunction(), $$CC_ERROR_PROTO, message, options); }
function CCTimeoutError_(message, options = undefined) { return MakeError(new.target, $activeFunction(), $$CC_TIMEOUT_ERROR_PROTO, message, options); }

function AggregateError_(errors, message, options = undefined) {
  const e = MakeError(new.target, $activeFunction(), $$AGGREGATE_ERROR_PROTO, message, options);
  $hidden(e, "errors", ListFromIterable(errors));
  return e;
}

// All values of an iterable as an internal array.
function ListFromIterable(iterable) {
  const list = [];
  const it = OpenIterator(iterable, iterable[$$SYM_ITERATOR]);
  while (true) {
    const step = $call(it[1], it[0]);
    if (!$isObject(step)) $typeError("Iterator result is not an object");
    if (step.done) return list;
    $push(list, step.value);
  }
}

const ErrorStatics = {
  isError(arg) { return $isError(arg); },
};

const ErrorPrototype = {
  get stack() {
    if (!$isObject(this)) $typeError("get Error.prototype.stack requires that 'this' be an object");
    return $isError(this) ? $errorData(this) : undefined;
  },
  set stack(value) {
    if (!$isObject(this)) $typeError("set Error.prototype.stack requires that 'this' be an object");
    if (typeof value !== "string") $typeError("The stack of an error must be a string");
    SetIgnoringPrototype(this, $$ERROR_PROTO, "stack", value);
  },
  toString() {
    if (!$isObject(this)) $typeError("Error.prototype.toString requires that 'this' be an object");
    const name = this.name;
    const n = name === undefined ? "Error" : $toString(name);
    const message = this.message;
    const m = message === undefined ? "" : $toString(message);
    if (n === "") return m;
    if (m === "") return n;
    return n + ": " + m;
  },
};
