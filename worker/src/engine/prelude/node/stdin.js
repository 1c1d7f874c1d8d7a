// The standard input: readable streams whose pieces the event loop reads while they are wanted.
0,function (_own, native, captured) {
  'use strict';
  const { stream: { Readable } } = captured.part('node_stream');
  // Reads of streams in order: each gets one piece.
  const waiting = [];
  const update = () => {
    if (waiting.length === 0) native.stdinWait(undefined, false);
    else native.stdinWait(deliver, waiting.some((wait) => wait.referenced));
  };
  const deliver = (read) => {
    const wait = waiting.shift();
    if (waiting.length > 0) update();
    wait.take(read);
  };
  captured.beginInput = () => { waiting.length = 0; };
  const open = (options = undefined) => {
    native.runSeen();
    const wait = {
      referenced: true,
      take([piece, code, message]) {
        if (code !== undefined) input.destroy(captured.inputError(code, message));
        else input.push(piece === null ? null : captured.toBuffer(piece));
      },
    };
    const stop = () => {
      const at = waiting.indexOf(wait);
      if (at === -1) return;
      waiting.splice(at, 1);
      input._readableState.reading = false;
      update();
    };
    const input = new Readable({
      highWaterMark: options?.highWaterMark ?? 65536,
      encoding: options?.encoding,
      read() {
        if (waiting.includes(wait)) return;
        // While it is paused, a stream reads nothing ahead, as that of Node on a terminal: nobody waits for what is typed.
        const { flowing, readableListening } = input._readableState;
        if (flowing === false && !readableListening) {
          input._readableState.reading = false;
          return;
        }
        waiting.push(wait);
        update();
      },
      destroy(failed, callback) { stop(); callback(failed); },
    });
    input.fd = 0;
    input.on('pause', stop);
    for (const [name, referenced] of [['ref', true], ['unref', false]]) {
      input[name] = () => {
        wait.referenced = referenced;
        if (waiting.includes(wait)) update();
        return input;
      };
    }
    return input;
  };
  return { open };
}
