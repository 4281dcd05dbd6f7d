"""The archive of usage samples measured: which design on Arrow and Parquet reaches its bars.

``usage`` is the design, ``made`` the samples, ``rivals`` what others do with them, ``inside`` the
measurement, in an environment of its own; ``figure`` draws how it grows.
"""
