# SPDX-License-Identifier: Apache-2.0
# This program includes the codec of disk records, and links its module for the rest.
NEEDS-model/test_row := extent_log
