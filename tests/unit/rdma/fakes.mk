# SPDX-License-Identifier: Apache-2.0
LINK-rdma/test_cmroute := fake_rdmacm
