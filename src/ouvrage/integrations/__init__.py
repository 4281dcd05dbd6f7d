"""A finished run's figures as metrics of MLflow, Weights & Biases, TensorBoard or ClearML.

Nothing here is imported by the meter: ``ouvrage run --log-to NAME`` gives the text of ``send`` to
the Python that the command itself used, after the command has ended. By hand, for a report on disk:
``python -m ouvrage.integrations NAME REPORT.json``.
"""
