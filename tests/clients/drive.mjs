// Drives a program with the official TypeScript client.
//
// drive.mjs URL BINARY ARGUMENT…   over standard streams (the command) and over HTTP (the URL). Prints one line at the end.

import assert from 'node:assert';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const SOURCE = `function main() { console.log('begin'); return CC('a?') + CC('b?'); }`;
const [url, command, ...args] = process.argv.slice(2);

async function drive(transport, name) {
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(transport);
    const { tools } = await client.listTools();
    assert.equal(tools.length, 10);
    const call = (tool, input, options) => client.callTool({ name: tool, arguments: input }, undefined, options);
    await call('load', { programId: name, source: SOURCE });
    let progress = 0;
    const started = await call('start', { programId: name, executionId: name }, { onprogress: () => (progress += 1) });
    assert.strictEqual(started.structuredContent.task.prompt, 'a?');
    assert.strictEqual((await call('getTask', {})).content[0].text, 'a?');
    await call('submitTask', { result: '1' });
    const done = await call('submitTask', { result: '2' });
    assert.strictEqual(done.structuredContent.result, '12');
    assert.deepStrictEqual((await call('get_output', {})).structuredContent.lines, ['begin']);
    const wrong = await call('load', { programId: 'wrong', source: 'let' });
    assert.strictEqual(wrong.isError, true);
    const prompt = await client.getPrompt({ name: 'run_program', arguments: { programId: name } });
    assert(prompt.messages[0].content.text.includes('getTask'));
    const read = await client.readResource({ uri: `vm://executions/${started.structuredContent.id}` });
    assert(read.contents[0].text.includes('COMPLETED'));
    // A cancelled call ends, and the next one gets its response.
    await call('load', { programId: 'endless', source: 'function main() { for (;;) {} }' });
    const controller = new AbortController();
    const endless = call('start', { programId: 'endless', executionId: `endless-${name}` }, { signal: controller.signal });
    controller.abort('enough');
    await assert.rejects(endless);
    assert((await call('server_info', {})).structuredContent.programs >= 2);
    await client.close();
}

await drive(new StdioClientTransport({ command, args, env: process.env }), 'stdio');
await drive(new StreamableHTTPClientTransport(new URL(url)), 'http');
console.log('driven');
