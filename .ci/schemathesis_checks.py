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

# A reference that is neither an id nor a known name: 400, as the original refuses a malformed id.
NO_EXECUTION = "VALIDATION_ERROR: execution_id is not an id"
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
# The machine has no memory or processes left; the response says when to try again.
FULL = "CAPACITY_EXCEEDED"

RUN = (NO_EXECUTION, NOT_OF_A_PROGRAM)
REASONS = {
    "setCurrentExecution": RUN,
    # Exactly one of two parameters is required, which OpenAPI cannot express.
    "listExecutions": ("VALIDATION_ERROR: give session_id, or kind=program", "VALIDATION_ERROR: give one of session_id and kind"),
    "startProgram": ("CONFLICT", WORKTREE, USER, NO_AGENT, OTHER_ENGINE, FULL),
    "evaluateInput": (*NOT_READY, OTHER_ENGINE, FULL),
    "runFile": (*NOT_READY, "INVALID_PATH", OTHER_ENGINE, FULL),
    "getExecution": RUN,
    "deleteExecution": RUN,
    "cancelExecution": RUN,
    "listCheckpoints": RUN,
    "listEvents": RUN,
    "exportExecution": RUN,
    "forkExecution": (*RUN, "CONFLICT", FULL),
    "rewindExecution": (*RUN, "CONFLICT", FULL),
    "getState": RUN,
    "setVariable": (*RUN, "TASK_NOT_PENDING"),
    "getTask": RUN,
    "submitAnswer": (*RUN, "TASK_NOT_PENDING", "ANSWER_INVALID", FULL),
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
    # Which blocks there are is in the plan. A name of a file is a relative path, and each file is there once.
    "loadProgram": ("COMPILE_ERROR", "PLAN_INVALID", "VALIDATION_ERROR: \"", "VALIDATION_ERROR: the file \"", FULL),
    # A name is that of one session that has not ended.
    "createSession": ("CONFLICT", WORKTREE, USER, NO_AGENT, OTHER_ENGINE, "STARTUP_FAILED", "LIBRARY_NOT_INSTALLED", "LIMIT_NOT_ALLOWED", FULL),
    "forkSession": (*NOT_READY, FULL),
    "inspectSession": NOT_READY,
    "listSessionCheckpoints": NOT_READY,
    # That a name is no number, and that the session has no other one of this name, is not described.
    "createSessionCheckpoint": (*NOT_READY, "CONFLICT", "VALIDATION_ERROR: a checkpoint's name", FULL),
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
    "createTemplate": ("CONFLICT", TYPE_CHECK),
    "deleteTemplate": (BUILT_IN,),
    "updateTemplate": (BUILT_IN, "CONFLICT", "LIMIT_NOT_ALLOWED", TYPE_CHECK),
    # The patterns of rows of kind net are checked by their parser.
    "addCapability": (BUILT_IN, "CONFLICT", "VALIDATION_ERROR: config.allow", "VALIDATION_ERROR: \""),
    "removeCapability": (BUILT_IN,),
    "addTemplateLibrary": (BUILT_IN, OTHER_ENGINE),
    "removeTemplateLibrary": (BUILT_IN,),
    "addTemplateModule": (BUILT_IN, OTHER_ENGINE, "MODULE_NOT_ALLOWED"),
    "removeTemplateModule": (BUILT_IN,),
    "addStartupFile": (BUILT_IN, OTHER_ENGINE, "CONFLICT", "INVALID_PATH", "STARTUP_MODE_UNSUPPORTED"),
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
