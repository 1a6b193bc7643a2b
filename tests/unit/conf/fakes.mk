# SPDX-License-Identifier: Apache-2.0
LINK-conf/test_conf := conf/rig
LINK-conf/test_refused := conf/rig
LINK-conf/test_sources := conf/rig
