# SPDX-License-Identifier: Apache-2.0
"""The version of this package, that of the tree."""

__version__ = "0.1.0"
