# SPDX-License-Identifier: Apache-2.0
LINK-rados/test_contract := librados store_contract
LINK-rados/test_gates := librados diff mem_store
