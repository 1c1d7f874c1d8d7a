"""Steps of a durable workflow in DBOS on SQLite: send an answer, wait for the next question.

Usage: dbos_steps.py STEPS FOLDER (empty, for its database). Prints one line per step: microseconds.
"""

import sys
import time

from dbos import DBOS, SetWorkflowID

STEPS, FOLDER = int(sys.argv[1]), sys.argv[2]
WORKFLOW, PATIENCE_S = "asker", 60

DBOS(
    config={
        "name": "peer",
        "system_database_url": f"sqlite:///{FOLDER}/peer.sqlite",
        "log_level": "ERROR",
        "run_admin_server": False,
        # With the default, a step waits for two polls of a second each.
        "notification_listener_polling_interval_sec": 0.001,
    }
)


@DBOS.workflow()
def asker(steps):
    for step in range(steps):
        DBOS.set_event(f"question-{step}", step)
        DBOS.recv("answer", timeout_seconds=PATIENCE_S)


DBOS.launch()
with SetWorkflowID(WORKFLOW):
    handle = DBOS.start_workflow(asker, STEPS + 1)
DBOS.get_event(WORKFLOW, "question-0", PATIENCE_S)
for step in range(1, STEPS + 1):
    begin = time.perf_counter()
    DBOS.send(WORKFLOW, "y" * 1024, "answer")
    DBOS.get_event(WORKFLOW, f"question-{step}", PATIENCE_S)
    print((time.perf_counter() - begin) * 1e6)
DBOS.send(WORKFLOW, "", "answer")
handle.get_result()
DBOS.destroy()
