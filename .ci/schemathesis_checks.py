"""Which refusals of a valid request are right (.ci/schemathesis.sh).

OpenAPI describes the form of a request, not what the daemon has at this moment. A request that has the described form may be
refused only for the reasons below, by operation and error code; a `VALIDATION_ERROR` also by its message. Every other refusal
is a failure: the description is too wide, or the server too strict.
"""

import schemathesis
from schemathesis.specs.openapi.checks import ensure_resource_availability

# An id or a name of the request belongs to no object.
MISSING = {
    "TEMPLATE_NOT_FOUND",
    "SESSION_NOT_FOUND",
    "EXECUTION_NOT_FOUND",
    "PROGRAM_NOT_FOUND",
    "TASK_NOT_FOUND",
    "LIBRARY_NOT_FOUND",
    "FILE_NOT_FOUND",
    "NOT_FOUND",
}

# The execution is a session's; only those of programs have states, tasks and files.
NOT_OF_A_PROGRAM = "ENGINE_UNSUPPORTED: execution "
# The folder does not exist, or is none.
WORKTREE = "VALIDATION_ERROR: the worktree "
# Only this machine knows its users.
USER = "VALIDATION_ERROR: there is no user "
# The daemon has no files agents for this user.
NO_AGENT = "NOT_PERMITTED: the worktree "
# Built-in templates do not change.
BUILT_IN = "NOT_PERMITTED: the template "
# The template is of the other engine.
OTHER_ENGINE = "ENGINE_UNSUPPORTED"
# Programs have no worktree that a compiler could read.
TYPE_CHECK = "VALIDATION_ERROR: runtime.typecheck is for templates with engine quickjs"
# Sessions that have ended, or run something.
NOT_READY = ("SESSION_NOT_READY", "SESSION_BUSY")
# That a parameter is for one value of another one cannot be expressed.
TWO_PARAMETERS = "VALIDATION_ERROR: cancel_on_disconnect is for requests that wait"
# Which integers a double keeps is no bound.
ROUNDED = "{}: the integer "
# The machine has no memory or processes left; the response says when to try again.
FULL = "CAPACITY_EXCEEDED"

REASONS = {
    "setCurrentExecution": (NOT_OF_A_PROGRAM,),
    # Exactly one of two parameters is required, and some are for one of these, which OpenAPI cannot express.
    "listExecutions": (
        "VALIDATION_ERROR: give session_id, or kind=program",
        "VALIDATION_ERROR: give one of session_id and kind",
        "VALIDATION_ERROR: program selects executions of programs",
        "VALIDATION_ERROR: name selects executions of programs",
        "VALIDATION_ERROR: owner selects executions of programs",
    ),
    "startProgram": ("CONFLICT", WORKTREE, USER, NO_AGENT, OTHER_ENGINE, FULL),
    "evaluateInput": (*NOT_READY, TWO_PARAMETERS, OTHER_ENGINE, FULL),
    # Which absolute paths lie in the session's worktree depends on the session.
    "runFile": (*NOT_READY, TWO_PARAMETERS, ROUNDED.format("VALIDATION_ERROR: args"), 'INVALID_PATH: "/', OTHER_ENGINE, FULL),
    "getExecution": (NOT_OF_A_PROGRAM,),
    "deleteExecution": (NOT_OF_A_PROGRAM,),
    "cancelExecution": (NOT_OF_A_PROGRAM,),
    "listCheckpoints": (NOT_OF_A_PROGRAM,),
    "listEvents": (NOT_OF_A_PROGRAM,),
    "exportExecution": (NOT_OF_A_PROGRAM,),
    "forkExecution": (NOT_OF_A_PROGRAM, "CONFLICT", FULL),
    "rewindExecution": (NOT_OF_A_PROGRAM, "CONFLICT", FULL),
    "getState": (NOT_OF_A_PROGRAM,),
    "setVariable": (NOT_OF_A_PROGRAM, ROUNDED.format("VALIDATION_ERROR: the value cannot be set"), "TASK_NOT_PENDING"),
    "getTask": (NOT_OF_A_PROGRAM,),
    "submitAnswer": (NOT_OF_A_PROGRAM, ROUNDED.format("INVALID_REQUEST: result"), "TASK_NOT_PENDING", "ANSWER_INVALID", FULL),
    # What a file must contain is not described (docs/durable-state.md).
    "importExecution": (
        "VALIDATION_ERROR: line 1 of the file",
        # That a parameter needs another one cannot be expressed.
        "VALIDATION_ERROR: as_user is only for the files of a worktree",
        "CONFLICT",
        WORKTREE,
        USER,
        NO_AGENT,
        OTHER_ENGINE,
        FULL,
    ),
    # Files of clients that went away are dropped after a minute.
    "importProgram": ("VALIDATION_ERROR: line 1 of the file", FULL),
    "checkPlan": ("PLAN_INVALID",),
    # The language is not described, nor which blocks a plan has. Two names may mean the same file (`a.js`, `./a.js`).
    "loadProgram": ("COMPILE_ERROR", "PLAN_INVALID", "VALIDATION_ERROR: the file \"", FULL),
    # A name is that of one session that has not ended.
    "createSession": ("CONFLICT", WORKTREE, USER, NO_AGENT, OTHER_ENGINE, "STARTUP_FAILED", "LIBRARY_NOT_INSTALLED", "LIMIT_NOT_ALLOWED", FULL),
    "renameSession": (*NOT_READY, "CONFLICT"),
    "forkSession": (*NOT_READY, FULL),
    "inspectSession": NOT_READY,
    "listSessionCheckpoints": NOT_READY,
    # A name is that of one checkpoint of the session.
    "createSessionCheckpoint": (*NOT_READY, "CONFLICT", FULL),
    "deleteSessionCheckpoint": NOT_READY,
    "rollbackSession": (*NOT_READY, FULL),
    "suspendSession": NOT_READY,
    "resumeSession": NOT_READY,
    # Which inputs a session had, and whether it restores another one, is not described.
    "restoreSession": (
        WORKTREE, USER, NO_AGENT, OTHER_ENGINE, "CONFLICT", "VALIDATION_ERROR: there is no input", "VALIDATION_ERROR: input ",
        "VALIDATION_ERROR: the record of",
        "STARTUP_FAILED", "LIBRARY_NOT_INSTALLED", FULL,
    ),
    "killSession": NOT_READY,
    "createTemplate": ("CONFLICT",),
    "deleteTemplate": (BUILT_IN,),
    "updateTemplate": (BUILT_IN, "CONFLICT", "LIMIT_NOT_ALLOWED", TYPE_CHECK),
    # Which names of hosts with letters beyond ASCII are valid is a table (IDNA).
    "addCapability": (BUILT_IN, "CONFLICT", "VALIDATION_ERROR: config.allow: \""),
    "removeCapability": (BUILT_IN,),
    "addTemplateLibrary": (BUILT_IN, OTHER_ENGINE),
    "removeTemplateLibrary": (BUILT_IN,),
    # This daemon's operator lists no commands.
    "addTemplateModule": (BUILT_IN, OTHER_ENGINE, "MODULE_NOT_ALLOWED: module \"exec\""),
    "removeTemplateModule": (BUILT_IN,),
    # The mode `import` needs a template with ES modules.
    "addStartupFile": (BUILT_IN, OTHER_ENGINE, "CONFLICT", "STARTUP_MODE_UNSUPPORTED"),
    "removeStartupFile": (BUILT_IN,),
}


def reason(response):
    error = response.json()["error"]
    return f"{error['code']}: {error['message']}"


@schemathesis.check
def refused_for_a_reason(ctx, response, case):
    """A valid request is accepted, or refused for a reason that its operation may have."""
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code < 400:
        return
    why = reason(response)
    code = why.split(":")[0]
    if response.status_code == 404 and code in MISSING:
        return
    if code == "IDEMPOTENCY_MISMATCH" and "Idempotency-Key" in (case.headers or {}):
        return
    operation = case.operation.definition.raw["operationId"]
    assert any(why.startswith(known) for known in REASONS.get(operation, ())), f"refused without a known reason: {why}"


@schemathesis.check
def created_object_is_available(ctx, response, case):
    """As `ensure_resource_availability`, but a response that is repeated for an Idempotency-Key may be older than a deletion."""
    parent = ctx.internals.find_parent(case_id=case.id)
    if parent is None or "Idempotency-Key" not in (parent.headers or {}):
        ensure_resource_availability(ctx, response, case)
