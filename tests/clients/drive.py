"""Drives a program with the official Python client, in both generations of the protocol.

drive.py URL BINARY ARGUMENT…   over standard streams (the command) and over HTTP (the URL). Prints one line at the end.
"""

import asyncio
import sys

from mcp import Client, StdioServerParameters

SOURCE = """
function main() {
    console.log('begin');
    const a = CC('a?');
    const b = CC('b?', { schema: { type: 'object', required: ['n'] } });
    return { a, n: b.n };
}
"""


def text(result):
    return result.content[0].text


async def drive(server, mode, name):
    async with Client(server, mode=mode) as client:
        version = client.protocol_version
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"load", "start", "getTask", "submitTask", "session_eval"} <= tools, tools
        await client.call_tool("load", {"programId": name, "source": SOURCE})
        heard = []

        async def progress(done, total, message):
            heard.append(done)

        started = await client.call_tool(
            "start", {"programId": name, "executionId": name}, progress_callback=progress
        )
        assert started.structured_content["task"]["prompt"] == "a?", started
        task = await client.call_tool("getTask", {"executionId": name})
        assert text(task) == "a?", task
        await client.call_tool("submitTask", {"executionId": name, "result": "1"})
        refused = await client.call_tool("submitTask", {"executionId": name, "result": "no JSON"})
        assert refused.is_error, refused
        done = await client.call_tool("submitTask", {"executionId": name, "result": '{"n": 2}'})
        assert done.structured_content["result"] == {"a": "1", "n": 2}, done
        output = await client.call_tool("get_output", {"executionId": name})
        assert output.structured_content["lines"] == ["begin"], output
        listed = await client.call_tool("list_executions", {})
        assert listed.structured_content["executions"][0]["executionId"] == name, listed
        prompt = await client.get_prompt("run_program", {"programId": name})
        assert "getTask" in prompt.messages[0].content.text
        read = await client.read_resource(f"vm://executions/{started.structured_content['id']}")
        assert "COMPLETED" in read.contents[0].text
        return version


async def main():
    url, binary, *arguments = sys.argv[1:]
    stdio = StdioServerParameters(command=binary, args=arguments)
    versions = []
    for number, (server, mode) in enumerate([(stdio, "legacy"), (stdio, "auto"), (url, "legacy"), (url, "auto")]):
        versions.append(await drive(server, mode, f"python{number}"))
    assert len(set(versions)) == 2, versions
    print("driven", *versions)


asyncio.run(main())
