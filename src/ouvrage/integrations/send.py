"""Logs the figures of one report with a tracking library, in a process of its own.

Decides which figures become metrics, what they are called, and which run of the library receives
them: the one that is named, else the only one that was made while the command ran, else a new one.
What is not known is left out, never logged as nought. Needs nothing but the library itself, so that
its text can be handed to any Python: ``python -c TEXT NAME WHERE < report.json``.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ANSWER = "ouvrage-logged: "
NOT_IMPORTABLE = 3
_SLACK_S = 2
_MOST_FILES = 20_000

Report = dict[str, Any]


class NotSent(Exception):
    """Why nothing was logged, in words."""


def metrics_of(report: Report) -> dict[str, float]:
    """The figures that are known, by the name under which they are logged."""
    unit = _word(report["unit"])
    cost, seconds = report.get("cost_per_unit") or {}, report.get("seconds_per_unit") or {}
    values = {
        f"ouvrage/cost_per_{unit}": cost.get("marginal"),
        f"ouvrage/cost_per_{unit}_all_in": cost.get("all_in"),
        "ouvrage/cost_total": (report.get("cost") or {}).get("total"),
        f"ouvrage/seconds_per_{unit}": seconds.get("median"),
        f"ouvrage/{unit}s": report.get("units"),
        "ouvrage/wall_s": report.get("wall_s"),
    }
    return {name: float(value) for name, value in values.items() if value is not None}


def texts_of(report: Report) -> dict[str, str]:
    """What a reader needs beside the numbers: currency, grade, the run's code."""
    price = report.get("price") or {}
    texts = {
        "ouvrage.run": report.get("code"),
        "ouvrage.unit": report.get("unit"),
        "ouvrage.currency": price.get("currency"),
        "ouvrage.grade": report.get("grade"),
        "ouvrage.outcome": report.get("outcome"),
    }
    return {name: str(value) for name, value in texts.items() if value is not None}


def _word(unit: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in unit) or "unit"


def send(name: str, where: str, report: Report) -> str:
    """Log with the library of this name; where it went, in words. Raises ``NotSent``."""
    if name not in SENDERS:
        raise NotSent(f"{name!r} is not one of {', '.join(SENDERS)}")
    return SENDERS[name](where, report)


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{name} cannot be imported by {sys.executable}: {error}") from error


def _span(report: Report) -> tuple[float, float]:
    """When the command ran, in seconds since 1970, with a little slack."""
    started = datetime.fromisoformat(report["started"].replace("Z", "+00:00"))
    ended = report.get("ended") or report["started"]
    until = datetime.fromisoformat(ended.replace("Z", "+00:00"))
    return started.timestamp() - _SLACK_S, until.timestamp() + _SLACK_S


def _title(report: Report) -> str:
    return report.get("label") or f"ouvrage {report['code']}"


# MLflow: written through the client, so that a finished run keeps its state and its end.


def _mlflow(where: str, report: Report) -> str:
    mlflow = _library("mlflow")
    if where:
        mlflow.set_tracking_uri(where)
    client = mlflow.MlflowClient()
    run = os.environ.get("MLFLOW_RUN_ID") or _mlflow_run(client, report)
    made = run is None
    if run is None:
        experiment = os.environ.get("MLFLOW_EXPERIMENT_ID") or "0"
        run = client.create_run(experiment, run_name=_title(report)).info.run_id
    for name, value in metrics_of(report).items():
        client.log_metric(run, name, value, step=report.get("units") or 0)
    for name, text in texts_of(report).items():
        client.set_tag(run, name, text)
    if made:
        client.set_terminated(run)
    return f"run {run}"


def _mlflow_run(client: Any, report: Report) -> str | None:
    since, until = (round(moment * 1000) for moment in _span(report))
    asked = f"attributes.start_time >= {since} and attributes.start_time <= {until}"
    experiments = [found.experiment_id for found in client.search_experiments()]
    runs = client.search_runs(experiments, filter_string=asked, max_results=2)
    return runs[0].info.run_id if len(runs) == 1 else None


# Weights & Biases: the run is resumed by its id, which its directory bears.


def _wandb(where: str, report: Report) -> str:
    wandb = _library("wandb")
    run_id = os.environ.get("WANDB_RUN_ID") or _wandb_run(report)
    settings: dict[str, Any] = {"id": run_id, "resume": "allow"} if run_id else {}
    if where:
        settings["project"] = where
    with contextlib.redirect_stdout(sys.stderr):
        run = wandb.init(name=None if run_id else _title(report), **settings)
        run.log(metrics_of(report))
        run.config.update(texts_of(report), allow_val_change=True)
        run.finish()
    return f"run {run.id} in {Path(run.dir).parent}"


def _wandb_run(report: Report) -> str | None:
    since, until = _span(report)
    kept = Path(os.environ.get("WANDB_DIR") or ".") / "wandb"
    ids: set[str] = set()
    for path in kept.glob("*run-*_*-*") if kept.is_dir() else ():
        stamp, _, run_id = path.name.partition("run-")[2].partition("-")
        with contextlib.suppress(ValueError):
            moment = datetime.strptime(stamp, "%Y%m%d_%H%M%S").astimezone(timezone.utc)
            if since - 1 <= moment.timestamp() <= until:
                ids.add(run_id)
    return ids.pop() if len(ids) == 1 else None


# TensorBoard: a file of events beside those that the command wrote.


def _tensorboard(where: str, report: Report) -> str:
    folder = where or _events_folder(report) or f"runs/ouvrage-{report['code']}"
    writer = _writer(folder)
    for name, value in metrics_of(report).items():
        writer.add_scalar(name, value, report.get("units") or 0)
    writer.close()
    return folder


def _writer(folder: str) -> Any:
    """The first writer that can be imported; the one that needs no framework before the others."""
    faults: list[str] = []
    for module, name in (
        ("tensorboardX", "SummaryWriter"),
        ("torch.utils.tensorboard", "SummaryWriter"),
        ("tensorboard.summary", "Writer"),
    ):
        try:
            return getattr(_library(module), name)(folder)
        except (ImportError, AttributeError) as error:
            faults.append(str(error))
    raise ImportError("; ".join(faults))


def _events_folder(report: Report) -> str | None:
    since, until = _span(report)
    folders: set[str] = set()
    seen = 0
    for above, below, names in os.walk("."):
        below[:] = [name for name in below if not name.startswith(".")]
        seen += len(names)
        if seen > _MOST_FILES:
            return None
        for name in names:
            path = os.path.join(above, name)
            if name.startswith("events.out.tfevents.") and since <= os.path.getmtime(path) <= until:
                folders.add(os.path.normpath(above))
    return folders.pop() if len(folders) == 1 else None


# ClearML: the task that is named, else one of its own.


def _clearml(where: str, report: Report) -> str:
    clearml = _library("clearml")
    task_id = os.environ.get("CLEARML_TASK_ID")
    with contextlib.redirect_stdout(sys.stderr):
        if task_id:
            task = clearml.Task.get_task(task_id=task_id)
        else:
            task = clearml.Task.init(
                project_name=where or os.environ.get("CLEARML_PROJECT") or "ouvrage",
                task_name=_title(report),
                reuse_last_task_id=False,
                auto_connect_arg_parser=False,
                auto_connect_frameworks=False,
                auto_resource_monitoring=False,
                auto_connect_streams=False,
            )
        logger = task.get_logger()
        for name, value in metrics_of(report).items():
            series = name.partition("/")[2]
            logger.report_scalar("ouvrage", series, value, report.get("units") or 0)
            logger.report_single_value(name, value)
        task.set_user_properties(**{k.replace(".", "_"): v for k, v in texts_of(report).items()})
        if not task_id:
            task.close()
        else:
            task.flush(wait_for_uploads=True)
    return f"task {task.id}"


SENDERS: dict[str, Callable[[str, Report], str]] = {
    "mlflow": _mlflow,
    "wandb": _wandb,
    "tensorboard": _tensorboard,
    "clearml": _clearml,
}


def main(arguments: list[str]) -> int:
    """Log the report that comes on standard input; the answer is the last line of the output."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    name, where = arguments
    try:
        told = send(name, where, json.load(sys.stdin))
    except ImportError as error:
        sys.stderr.write(f"{error}\n")
        return NOT_IMPORTABLE
    except Exception as error:  # noqa: BLE001 -- whatever a library raises becomes one line
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    sys.stdout.write(f"\n{ANSWER}{told}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
