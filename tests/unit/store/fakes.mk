# SPDX-License-Identifier: Apache-2.0
LINK-store/test_mem_store := mem_store store_contract
LINK-store/test_set_contract := mem_store store_contract
LINK-store/test_set := mem_store
LINK-store/test_set_list := mem_store
