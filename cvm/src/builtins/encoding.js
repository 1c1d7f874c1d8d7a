// Bytes and text: `TextEncoder`, `TextDecoder`, base64 and hexadecimal digits of `Uint8Array`, `crypto.getRandomValues`.

// --- TextEncoder: a record (tag 921) without state.

function TextEncoder_() {
  if (new.target === undefined) $typeError("Class constructor TextEncoder cannot be invoked without 'new'");
  return $record(921, ProtoFor(new.target, $$TEXT_ENCODER_PROTO));
}

function NeedEncoder(value) {
  if ($recordTag(value) !== 921) throw CodedTypeError("ERR_INVALID_THIS", "Value of \"this\" must be of type TextEncoder");
}

const TextEncoderPrototype = {
  get encoding() {
    NeedEncoder(this);
    return "utf-8";
  },
  encode(input = "") {
    NeedEncoder(this);
    return $textEncode($toString(input));
  },
  encodeInto(source, destination) {
    NeedEncoder(this);
    const text = $toString(source);
    if ($elementType(destination) !== 2) {
      throw CodedTypeError("ERR_INVALID_ARG_TYPE", "The \"dest\" argument must be an instance of Uint8Array.");
    }
    const counts = $textEncodeInto(text, destination);
    const result = $create($$OBJECT_PROTO);
    $createData(result, "read", counts[0]);
    $createData(result, "written", counts[1]);
    return result;
  },
};

// --- TextDecoder: a record (tag 922) of the encoding, `fatal`, `ignoreBOM`, the bytes of a character that is not complete, and
// whether a stream has begun.

function TextDecoder_(label = "utf-8", options = undefined) {
  if (new.target === undefined) $typeError("Class constructor TextDecoder cannot be invoked without 'new'");
  const wanted = $toString(label);
  const encoding = $encodingOf(wanted);
  if (encoding === undefined) {
    const error = MakeError($$RANGE_ERROR, $$RANGE_ERROR, $$RANGE_ERROR_PROTO, "The \"" + wanted + "\" encoding is not supported", undefined);
    $createData(error, "code", "ERR_ENCODING_NOT_SUPPORTED");
    throw error;
  }
  const given = options !== undefined && options !== null;
  const fatal = given && options.fatal ? true : false;
  const ignoreBOM = given && options.ignoreBOM ? true : false;
  return $record(922, ProtoFor(new.target, $$TEXT_DECODER_PROTO), encoding, fatal, ignoreBOM, undefined, false);
}

function DecoderPart(value, part) {
  if ($recordTag(value) !== 922) throw CodedTypeError("ERR_INVALID_THIS", "Value of \"this\" must be of type TextDecoder");
  return $recordGet(value, part);
}

const TextDecoderPrototype = {
  get encoding() { return DecoderPart(this, 0); },
  get fatal() { return DecoderPart(this, 1); },
  get ignoreBOM() { return DecoderPart(this, 2); },
  decode(input = undefined, options = undefined) {
    const encoding = DecoderPart(this, 0);
    const stream = options !== undefined && options !== null && options.stream ? true : false;
    if (input !== undefined && $bufferLength(input) === undefined && !$isView(input)) {
      throw CodedTypeError("ERR_INVALID_ARG_TYPE", "The \"input\" argument must be an instance of ArrayBuffer or ArrayBufferView.");
    }
    const keepMark = $recordGet(this, 2) || $recordGet(this, 4);
    const result = $textDecode(encoding, $recordGet(this, 3), input, $recordGet(this, 1), keepMark, stream);
    if (result === 1) $rangeError("Text in the encoding " + encoding + " cannot be decoded in chunks: decode it at once, without `stream`");
    if (result === 0) {
      $recordSet(this, 3, undefined);
      $recordSet(this, 4, false);
      throw CodedTypeError("ERR_ENCODING_INVALID_ENCODED_DATA", "The encoded data was not valid for encoding " + encoding);
    }
    $recordSet(this, 3, result[1]);
    $recordSet(this, 4, stream && ($recordGet(this, 4) || result[2] > 0));
    return result[0];
  },
};

// --- Uint8Array, ECMA-262 23.3.

function NeedUint8Array(value) {
  if ($elementType(value) !== 2) $typeError($shown(value) + " is not a Uint8Array");
}

function NeedText(value) {
  if (typeof value !== "string") $typeError($shown(value) + " is not a string");
}

function OptionsOf(options) {
  if (options === undefined) return $create(null);
  if (!$isObject(options)) $typeError("options must be an object");
  return options;
}

// True for base64url.
function AlphabetOf(options) {
  const alphabet = options.alphabet;
  if (alphabet === undefined || alphabet === "base64") return false;
  if (alphabet !== "base64url") $typeError("alphabet must be \"base64\" or \"base64url\"");
  return true;
}

// 0 loose, 1 strict, 2 stop-before-partial
function LastChunkOf(options) {
  const handling = options.lastChunkHandling;
  if (handling === undefined || handling === "loose") return 0;
  if (handling === "strict") return 1;
  if (handling !== "stop-before-partial") $typeError("lastChunkHandling must be \"loose\", \"strict\" or \"stop-before-partial\"");
  return 2;
}

// Decoded digits as they were stored in `target`: units that were read, bytes that were written, whether the text is valid.
function Stored(counts, what) {
  if (!counts[2]) $syntaxError("The string is not valid " + what);
  const result = $create($$OBJECT_PROTO);
  $createData(result, "read", counts[0]);
  $createData(result, "written", counts[1]);
  return result;
}

const Uint8ArrayStatics = {
  fromBase64(string, options = undefined) {
    NeedText(string);
    const given = OptionsOf(options);
    const url = AlphabetOf(given);
    const bytes = $base64Bytes(string, url, LastChunkOf(given), undefined);
    if (bytes === undefined) $syntaxError("The string is not valid base64");
    return bytes;
  },
  fromHex(string) {
    NeedText(string);
    const bytes = $hexBytes(string, undefined);
    if (bytes === undefined) $syntaxError("The string is not valid hexadecimal text");
    return bytes;
  },
};

const Uint8ArrayPrototype = {
  toBase64(options = undefined) {
    NeedUint8Array(this);
    const given = OptionsOf(options);
    const url = AlphabetOf(given);
    const omitPadding = given.omitPadding ? true : false;
    CountOf(this);
    return $bytesBase64(this, url, !omitPadding);
  },
  toHex() {
    NeedUint8Array(this);
    CountOf(this);
    return $bytesHex(this);
  },
  setFromBase64(string, options = undefined) {
    NeedUint8Array(this);
    NeedText(string);
    const given = OptionsOf(options);
    const url = AlphabetOf(given);
    const last = LastChunkOf(given);
    CountOf(this);
    return Stored($base64Bytes(string, url, last, this), "base64");
  },
  setFromHex(string) {
    NeedUint8Array(this);
    NeedText(string);
    CountOf(this);
    return Stored($hexBytes(string, this), "hexadecimal text");
  },
};

const CryptoFunctions = {
  getRandomValues(array) {
    const type = $elementType(array);
    if (type === undefined || type > 8) {
      throw MakeException($$DOM_EXCEPTION, "The data argument must be an integer-type TypedArray", "TypeMismatchError");
    }
    const bytes = CountOf(array) * $elementSize(type);
    if (bytes > 65536) {
      throw MakeException($$DOM_EXCEPTION, "The requested length exceeds 65,536 bytes", "QuotaExceededError");
    }
    $randomFill(array);
    return array;
  },
};
